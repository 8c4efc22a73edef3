import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

const FLUSH_MS = 1_000;
const MAX_PENDING = 2_000;
const SERVER_KIND = 2;
const ERROR_STATUS = 2;

/**
 * Spans of the requests that this process answers, sent to an OTLP collector as JSON. Only requests with a sampled traceparent
 * are recorded. Implemented here because the OpenTelemetry packages are larger than the rest of an environment.
 */
export class SandboxTracer {
  readonly #url: string;
  readonly #resource: object;
  #pending: object[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(endpoint: string, environment: { readonly name: string; readonly version: string }) {
    this.#url = `${endpoint.replace(/\/$/, "").replace(/\/v1\/traces$/, "")}/v1/traces`;
    this.#resource = {
      attributes: [text("service.name", "aenv-sandbox"), text("aenv.environment", `${environment.name}@${environment.version}`)],
    };
  }

  trace(request: IncomingMessage, response: ServerResponse): void {
    const [, traceId, parentSpanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(String(request.headers.traceparent)) ?? [];
    if (traceId === undefined) return;
    const began = now();
    response.once("close", () => {
      if (this.#pending.length >= MAX_PENDING) return;
      this.#pending.push({
        traceId,
        spanId: randomBytes(8).toString("hex"),
        parentSpanId,
        name: `${request.method} ${(request.url ?? "/").replace(/\?.*$/, "").replace(/^\/env-instance\/[^/]+/, "")}`,
        kind: SERVER_KIND,
        startTimeUnixNano: began,
        endTimeUnixNano: now(),
        attributes: [{ key: "http.response.status_code", value: { intValue: response.statusCode } }],
        ...(response.statusCode >= 500 && { status: { code: ERROR_STATUS } }),
      });
      this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
    });
  }

  /** Sends the pending spans. If the collector is unreachable, they are lost; calls are not affected. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const spans = this.#pending;
    this.#pending = [];
    if (spans.length === 0) return;
    const body = JSON.stringify({ resourceSpans: [{ resource: this.#resource, scopeSpans: [{ scope: { name: "aenv" }, spans }] }] });
    const headers = { "content-type": "application/json" };
    await fetch(this.#url, { method: "POST", headers, body, signal: AbortSignal.timeout(5_000) }).catch(() => {});
  }
}

function text(key: string, value: string): object {
  return { key, value: { stringValue: value } };
}

/** Nanoseconds since 1970, as text, as OTLP requires. */
function now(): string {
  return `${BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n}`;
}
