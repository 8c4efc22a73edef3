import type { LookupFunction } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import {
  boundedChunks,
  isPlatformError,
  messageOf,
  parseBoundedJson,
  parseRetryAfter,
  ReadLimitExceeded,
  TimedSignal,
} from "@aenv/contract";
import { Agent, buildConnector, request } from "undici";
import { ModelError } from "../player/failure.ts";
import { LimitReached } from "../player/limits.ts";

export interface ModelHttpOptions {
  /** Attempts after the first that failed for a reason that may pass: no connection, a cut answer, a status of 5xx. */
  readonly retries: number;
  /** How long one answer may take. */
  readonly timeoutMs: number;
  /** Called when the endpoint says that it is busy, with the pause it asks for, so that fewer episodes ask at once. */
  readonly onBusy?: (pauseMs: number) => void;
  /** Resolves the endpoints' names; it may refuse an address. */
  readonly lookup?: (port: number) => LookupFunction;
  /** Pauses between attempts; a test gives its own. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** The body of an answer, which throws ReadLimitExceeded beyond the largest answer that is read. */
export type ModelAnswer = AsyncIterable<Uint8Array>;

/** The largest answer that is read of an endpoint: a hundred thousand tokens with ids and log-probabilities are about 10 MB. */
export const MAX_ANSWER_BYTES = 32 * 1_024 ** 2;
/** Only the beginning of an error's body is read, and less of it is shown. */
const MAX_ERROR_BYTES = 64 * 1_024;
const MAX_MESSAGE_CHARACTERS = 500;

export interface ModelRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** An answer of status 4xx that another attempt would get again. */
export class RefusedByModel extends ModelError {
  readonly status: number;
  readonly code: string | null;

  constructor(status: number, code: string | null, message: string) {
    super(message, { retryable: false });
    this.status = status;
    this.code = code;
  }
}

/** Refusals that another attempt may not get again: too slow, a conflict with another request, too early. */
const MAY_PASS: ReadonlySet<number> = new Set([408, 409, 425]);

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Posts to a model's endpoint. A busy endpoint (429, or 503 with `Retry-After`) is waited for as long as the caller's signal allows:
 * a pause for a weight update is no failure. What else may pass is tried again a few times.
 */
export class ModelHttp {
  readonly #options: ModelHttpOptions;
  readonly #connections: Agent;

  constructor(options: ModelHttpOptions) {
    this.#options = options;
    const { lookup } = options;
    this.#connections = new Agent({
      pipelining: 1,
      keepAliveTimeout: 30_000,
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(lookup !== undefined && { connect: connectorWith(lookup) }),
    });
  }

  async close(): Promise<void> {
    await this.#connections.destroy();
  }

  /**
   * `read` is called with each answer of status 2xx; if it throws an error that is retryable, the request is sent again. `onDelay` is
   * called with the time that a failed attempt took and with the pause after it, before that.
   */
  async post<T>(
    call: ModelRequest,
    read: (body: ModelAnswer) => Promise<T>,
    signal: AbortSignal,
    onDelay: (ms: number) => void = () => {},
  ): Promise<T> {
    const { retries, onBusy, sleep = rest } = this.#options;
    let failures = 0;
    let waits = 0;
    let last: ModelError | null = null;
    for (;;) {
      signal.throwIfAborted();
      const from = performance.now();
      try {
        return await this.#once(call, read, signal);
      } catch (error) {
        // It was in trouble before: that is why there is no answer in time.
        if (last !== null && signal.reason instanceof LimitReached) throw last;
        signal.throwIfAborted();
        const took = performance.now() - from;
        if (error instanceof Busy) {
          // A pause of 0 is obeyed once: an endpoint that keeps asking for it would be asked without any pause.
          const asked = error.pauseMs === 0 && waits > 0 ? null : error.pauseMs;
          const pauseMs = asked ?? backoff(waits);
          waits++;
          last = new ModelError(`${call.url} was busy until the agent's time was up`, { retryable: true });
          onBusy?.(pauseMs);
          onDelay(took + pauseMs);
          await sleep(pauseMs, signal);
        } else {
          const failure = failureOf(call.url, error);
          if (!failure.retryable || failures >= retries) throw failure;
          last = failure;
          const pauseMs = backoff(failures++);
          onDelay(took + pauseMs);
          await sleep(pauseMs, signal);
        }
      }
    }
  }

  async #once<T>(call: ModelRequest, read: (body: ModelAnswer) => Promise<T>, signal: AbortSignal): Promise<T> {
    using limit = new TimedSignal(this.#options.timeoutMs, signal);
    try {
      const { statusCode, headers, body } = await request(call.url, {
        method: "POST",
        headers: { "content-type": "application/json", ...call.headers },
        body: JSON.stringify(call.body),
        signal: limit.signal,
        dispatcher: this.#connections,
      });
      if (statusCode >= 200 && statusCode < 300) return await read(boundedChunks(body, { maxBytes: MAX_ANSWER_BYTES }));
      throw refusal(call.url, statusCode, headers["retry-after"], await beginningOf(body));
    } catch (error) {
      if (!limit.isOver) throw error;
      throw new ModelError(`${call.url} did not answer within ${this.#options.timeoutMs / 1_000} s`, { retryable: true, cause: error });
    }
  }
}

/** The endpoint is busy and says so. */
export class Busy extends Error {
  readonly pauseMs: number | null;

  constructor(pauseMs: number | null) {
    super("the endpoint is busy");
    this.pauseMs = pauseMs;
  }
}

/** What an answer of a status other than 2xx means. */
export function refusal(url: string, status: number, retryAfter: string | string[] | undefined, text: string): Busy | ModelError {
  const pauseMs = parseRetryAfter((Array.isArray(retryAfter) ? retryAfter[0] : retryAfter) ?? null, Date.now());
  if (status === 429 || (status === 503 && pauseMs !== null)) return new Busy(pauseMs);
  const { code, message } = readError(text);
  if (status >= 500 || MAY_PASS.has(status)) return new ModelError(`${url} answered ${status}: ${message}`, { retryable: true });
  return new RefusedByModel(status, code, `${url} answered ${status}: ${message}`);
}

/** What a failed exchange with an endpoint means. */
export function failureOf(url: string, error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  // The lookup refuses an address.
  if (isPlatformError(error, "model.failed")) return new ModelError(error.message, { retryable: error.retryable, cause: error });
  // Another attempt would read as much again.
  if (error instanceof ReadLimitExceeded) return new ModelError(`the answer of ${url} is not read: ${error.message}`, { retryable: false });
  return unreachable(url, error);
}

async function beginningOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of boundedChunks(body, { maxBytes: MAX_ERROR_BYTES })) text += decoder.decode(chunk, { stream: true });
  } catch (error) {
    if (!(error instanceof ReadLimitExceeded)) throw error;
  }
  return text;
}

function readError(text: string): { code: string | null; message: string } {
  try {
    const { error, message } = parseBoundedJson(text) as { error?: { code?: unknown; message?: unknown } | string; message?: unknown };
    const said = typeof error === "string" ? error : (error?.message ?? message);
    const code = typeof error === "object" && typeof error.code === "string" ? error.code : null;
    if (typeof said === "string") return { code, message: said.slice(0, MAX_MESSAGE_CHARACTERS) };
  } catch {
    // Not JSON: the beginning of the text is shown.
  }
  return { code: null, message: text.slice(0, 200) || "nothing" };
}

function unreachable(url: string, cause: unknown): ModelError {
  return new ModelError(`the model's endpoint ${url} could not be reached, or broke off: ${messageOf(cause)}`, { retryable: true, cause });
}

function backoff(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
}

function rest(ms: number, signal: AbortSignal): Promise<unknown> {
  return pause(ms, undefined, { signal });
}

/** Connects with the lookup of the port. TLS sessions are kept for each port. */
function connectorWith(lookup: (port: number) => LookupFunction): buildConnector.connector {
  const connectors = new Map<number, buildConnector.connector>();
  return (target, callback) => {
    const port = Number(target.port || (target.protocol === "https:" ? 443 : 80));
    const connector = connectors.get(port) ?? buildConnector({ lookup: lookup(port) });
    connectors.set(port, connector);
    connector(target, callback);
  };
}
