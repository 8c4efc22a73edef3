import { Readable } from "node:stream";
import { messageOf, ReadLimitExceeded } from "@aenv/contract";
import { Agent, type Dispatcher } from "undici";
import { AnswerLimitError } from "../errors/errors.ts";
import { isRefused, TransportError } from "../errors/http-errors.ts";
import { type HttpAnswer, type HttpRequest, MAX_ANSWER_BYTES, type Transport } from "../http/http.ts";
import { fetchTransport } from "./fetch.ts";
import { IdleTimer, idleMessage, timed } from "./idle-timer.ts";

// One agent for the process: ten thousand environments behind one gateway share its connections.
// An idle socket does not keep the process alive, so the agent is never closed. undici's timeouts are off, because
// a long tool call may send nothing until its own deadline.
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });

/** Limit of unread bytes of a response; beyond it the socket is paused. */
const BUFFER_BYTES = 256 * 1024;

/** Bun replaces undici with a package of its own, which has no dispatchers. */
const isBun = "bun" in process.versions;

export const defaultTransport: Transport = isBun ? fetchTransport((url, init) => globalThis.fetch(url, init)) : undiciTransport(agent);

/** Sends requests by undici, with keep-alive. */
export function undiciTransport(dispatcher: Dispatcher): Transport {
  return { send: (request) => new Exchange(request).begin(dispatcher) };
}

/**
 * One request and its response, by undici's callbacks: they take half the time of its `request`,
 * and a fifth of the time of `fetch`.
 */
class Exchange implements Dispatcher.DispatchHandler, HttpAnswer {
  status = 0;
  readonly #request: HttpRequest;
  readonly #begun = Promise.withResolvers<HttpAnswer>();
  #controller: Dispatcher.DispatchController | null = null;
  #headers: Readonly<Record<string, string | string[] | undefined>> = {};
  #chunks: Uint8Array[] = [];
  #bufferedBytes = 0;
  /** The body is read as one text, so it is buffered up to this size; null while it is not. */
  #wholeBytes: number | null = null;
  #isPaused = false;
  readonly #idle: IdleTimer | null;
  #isOver = false;
  #failure: { readonly error: unknown } | null = null;
  /** Resolves the promise of a reader that waits for more of the body. */
  #wake = () => {};

  constructor(request: HttpRequest) {
    this.#request = request;
    const { idleTimeoutMs: limitMs } = request;
    this.#idle = limitMs === undefined ? null : new IdleTimer(limitMs, () => this.#abort(stalled(request, limitMs)));
  }

  begin(dispatcher: Dispatcher): Promise<HttpAnswer> {
    const { url, method, headers, body, signal } = this.#request;
    if (signal?.aborted) return Promise.reject(signal.reason);
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    const { origin, path } = targetOf(url);
    this.#idle?.restart();
    try {
      const sent = body === undefined || typeof body === "string" ? (body ?? null) : this.#stream(body);
      dispatcher.dispatch(
        { origin, path, method: method as Dispatcher.HttpMethod, headers: headers as Record<string, string>, body: sent },
        this,
      );
    } catch (error) {
      this.#end(error);
    }
    return this.#begun.promise;
  }

  header(name: string): string | null {
    const value = this.#headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(", ") : (value ?? null);
  }

  async text(maxBytes = MAX_ANSWER_BYTES): Promise<string> {
    this.#wholeBytes = maxBytes;
    if (this.#bufferedBytes > maxBytes || Number(this.#headers["content-length"]) > maxBytes) this.#refuse(maxBytes);
    this.#resume();
    while (!this.#isOver) await this.#more();
    if (this.#failure !== null) throw this.#failure.error;
    const [only] = this.#chunks;
    return (this.#chunks.length === 1 ? (only as Buffer) : Buffer.concat(this.#chunks)).toString("utf8");
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        for (let chunk = this.#take(); chunk !== undefined; chunk = this.#take()) yield chunk;
        if (this.#failure !== null) throw this.#failure.error;
        if (this.#isOver) return;
        await this.#more();
      }
    } finally {
      // The reader stopped early: the rest of the body is not needed.
      if (!this.#isOver) this.#controller?.abort(new Error("the rest of the response was not read"));
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The caller aborted while the request was queued for a connection; it must not be sent.
    if (this.#isOver) controller.abort(new Error("aborted before it was sent"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return;
    this.status = status;
    this.#headers = headers;
    this.#idle?.restart();
    this.#begun.resolve(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#wholeBytes !== null && this.#bufferedBytes > this.#wholeBytes) this.#refuse(this.#wholeBytes);
    else if (this.#wholeBytes !== null || this.#bufferedBytes < BUFFER_BYTES) {
      this.#idle?.restart();
    } else {
      // The reader is slower than the server: stop reading from the socket, and do not count the reader's time as idle.
      this.#isPaused = true;
      this.#idle?.stop();
      controller.pause();
    }
    this.#wake();
  }

  onResponseEnd(): void {
    this.#end(null);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end(error);
  }

  /** undici reads from it with backpressure. */
  #stream(body: AsyncIterable<Uint8Array>): Readable {
    return Readable.from(this.#idle === null ? body : timed(body, this.#idle), { objectMode: false });
  }

  #take(): Uint8Array | undefined {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) this.#bufferedBytes -= chunk.length;
    if (this.#bufferedBytes < BUFFER_BYTES) this.#resume();
    return chunk;
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#idle?.restart();
    this.#controller?.resume();
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** The body is too large: its connection is closed, and what has arrived is dropped. */
  #refuse(maxBytes: number): void {
    this.#chunks = [];
    const error = new AnswerLimitError(this.#request, new ReadLimitExceeded("bytes", maxBytes));
    if (this.#isOver) this.#failure ??= { error };
    else this.#abort(error);
  }

  readonly #onAbort = () => this.#abort(this.#request.signal?.reason);

  #abort(reason: unknown): void {
    this.#end(reason, true);
    this.#controller?.abort(new Error("aborted"));
  }

  #end(error: unknown, isOwnAbort = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#idle?.close();
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
    if (error !== null) {
      this.#failure = { error: isOwnAbort ? error : failed(this.#request, error) };
      this.#begun.reject(this.#failure.error);
    }
    this.#wake();
  }
}

/** The parts of recent URLs: an instance is called at the same few, and to parse one takes as long as to read a small answer. */
const recentTargets = new Map<string, { readonly origin: string; readonly path: string }>();
const MOST_RECENT_TARGETS = 64;

function targetOf(url: string): { readonly origin: string; readonly path: string } {
  const known = recentTargets.get(url);
  if (known !== undefined) return known;
  const { origin, pathname, search } = new URL(url);
  const target = { origin, path: pathname + search };
  if (recentTargets.size >= MOST_RECENT_TARGETS) recentTargets.clear();
  recentTargets.set(url, target);
  return target;
}

function failed(request: HttpRequest, cause: unknown): TransportError {
  return new TransportError(`${request.method} ${request.url}: ${messageOf(cause)}`, {
    wasSent: !wasNeverSent(cause),
    isRefused: isRefused(cause),
    cause,
  });
}

function stalled({ method, url }: HttpRequest, limitMs: number): TransportError {
  return new TransportError(`${method} ${url}: ${idleMessage(limitMs)}`, { wasSent: true, isTimeout: true });
}

/** True when there was no connection: unknown host, refused, or a timeout of the handshake. */
function wasNeverSent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(wasNeverSent);
  if (!(error instanceof Error)) return false;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return code === "UND_ERR_CONNECT_TIMEOUT" || syscall === "connect" || syscall === "getaddrinfo";
}
