/** One HTTP request; the body is JSON as text, or a stream of bytes for an archive. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
  /** The request fails when no byte was sent or received for this long; no limit if absent. */
  readonly idleTimeoutMs?: number;
}

/** The largest answer that is read into memory as a whole, unless an option says otherwise. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** A response whose headers have arrived. Its body must be read once, by `text` or by `chunks`. */
export interface HttpAnswer {
  readonly status: number;
  header(name: string): string | null;
  /** The whole body. A larger one than `maxBytes`, 64 MiB if absent, throws an AnswerLimitError, and its connection is closed. */
  text(maxBytes?: number): Promise<string>;
  chunks(): AsyncIterable<Uint8Array>;
}

/** Sends requests. `send` throws a TransportError, or the signal's reason when it aborts. */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
