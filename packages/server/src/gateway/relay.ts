import type { IncomingMessage, ServerResponse } from "node:http";
import type { Agent, Dispatcher } from "undici";

export interface RelayOptions {
  readonly agent: Agent;
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly maxBodyBytes: number | null;
}

/** How a relayed call ended, for those who keep count. */
export type RelayEnd =
  | { readonly kind: "answered"; readonly status: number }
  | { readonly kind: "lost"; readonly error: Error }
  | { readonly kind: "left" }
  | { readonly kind: "too_large" };

/** Headers that speak of one connection and not of the message. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Streams a request into a box and its answer back, unread and unbuffered; whoever hangs up ends both sides. */
export function relay(request: IncomingMessage, response: ServerResponse, options: RelayOptions): Promise<RelayEnd> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | null = null;
    let isOver = false;
    const finish = (end: RelayEnd) => {
      if (isOver) return;
      isOver = true;
      resolve(end);
    };
    response.once("close", () => {
      if (response.writableFinished) return;
      finish({ kind: "left" });
      controller?.abort(new Error("the client went away"));
    });
    const hasBody = request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined;
    if (hasBody && options.maxBodyBytes !== null) {
      watchSize(request, options.maxBodyBytes, () => {
        finish({ kind: "too_large" });
        controller?.abort(new Error("the body is too large"));
      });
    }
    options.agent.dispatch(
      {
        origin: options.origin,
        path: options.path,
        method: request.method as Dispatcher.HttpMethod,
        headers: options.headers,
        body: hasBody ? request : null,
      },
      {
        onRequestStart(started) {
          controller = started;
          if (isOver) started.abort(new Error("the client went away"));
        },
        onResponseStart(started, status, headers) {
          if (response.destroyed || isOver) return started.abort(new Error("the client went away"));
          response.writeHead(status, endToEnd(headers));
          // A stream's client must know at once that it has begun.
          response.flushHeaders();
        },
        onResponseData(started, chunk) {
          if (response.write(chunk)) return;
          started.pause();
          response.once("drain", () => started.resume());
        },
        onResponseEnd() {
          response.end(() => finish({ kind: "answered", status: response.statusCode }));
        },
        onResponseError(_, error) {
          finish({ kind: "lost", error });
          if (response.headersSent) response.destroy();
        },
      },
    );
  });
}

/** Counts what passes by without holding it up. */
function watchSize(request: IncomingMessage, maxBytes: number, onExceeded: () => void): void {
  if (Number(request.headers["content-length"]) > maxBytes) onExceeded();
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) onExceeded();
  });
  request.pause();
}

function endToEnd(headers: Record<string, string | string[] | undefined>): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) if (value !== undefined && !HOP_BY_HOP.has(name.toLowerCase())) kept[name] = value;
  return kept;
}

/** The request's headers as the box may see them: no credentials of the platform's, no routing, the box's own host. */
export function headersForBox(request: IncomingMessage, more: Readonly<Record<string, string>>): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || PRIVATE.has(name)) continue;
    kept[name] = value;
  }
  return { ...kept, ...more, host: "localhost" };
}

const PRIVATE = new Set(["host", "authorization", "cookie", "origin", "expect", "aenvcore-mcpproxy-url", "aenvcore-envinstance-id"]);
