/** One HTTP request; the body is JSON as text, or a stream of bytes for an archive. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
  /** Gives up when the other side has neither taken nor given a byte for so long; waits for ever if absent. */
  readonly idleTimeoutMs?: number;
}

/** An answer whose head has arrived. Its body must be read, once, by `text` or by `chunks`. */
export interface HttpAnswer {
  readonly status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  chunks(): AsyncIterable<Uint8Array>;
}

/** What carries requests. `send` throws a TransportError, or the signal's reason when it aborts. */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
