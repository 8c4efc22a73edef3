import { messageOf, ReadLimitExceeded, readBoundedText } from "@aenv/contract";
import { AnswerLimitError } from "../errors/errors.ts";
import { isRefused, TransportError } from "../errors/http-errors.ts";
import { type HttpAnswer, type HttpRequest, MAX_ANSWER_BYTES, type Transport } from "../http/http.ts";
import { IdleTimer, idleMessage } from "./idle-timer.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Sends requests by `fetch`: the browser's, or a custom one, for example with a proxy or certificates. */
export function fetchTransport(fetch: Fetch): Transport {
  return { send: (request) => send(fetch, request) };
}

async function send(fetch: Fetch, request: HttpRequest): Promise<HttpAnswer> {
  const { url, method, headers, body } = request;
  const limits = new RequestLimits(request);
  let response: Response;
  try {
    const sent = body === undefined || typeof body === "string" ? body : await readAll(body);
    limits.idle?.restart();
    const { signal } = limits;
    // Redirects are not followed: that would send the headers, which may contain a token, to another host.
    response = await fetch(url, {
      method,
      headers,
      redirect: "manual",
      ...(sent !== undefined && { body: sent }),
      ...(signal && { signal }),
    });
    limits.idle?.restart();
  } catch (cause) {
    throw limits.failed(cause);
  }
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    text: (maxBytes) => text(response, limits, maxBytes),
    chunks: () => chunks(response, limits),
  };
}

/** The caller's signal and the idle timeout of one request. */
class RequestLimits {
  readonly signal: AbortSignal | undefined;
  readonly idle: IdleTimer | null;
  readonly request: HttpRequest;
  readonly #stalled = new AbortController();

  constructor(request: HttpRequest) {
    this.request = request;
    const { signal, idleTimeoutMs: limitMs } = request;
    this.idle = limitMs === undefined ? null : new IdleTimer(limitMs, () => this.#stalled.abort(new Error(idleMessage(limitMs))));
    this.signal = limitMs === undefined ? signal : AbortSignal.any([this.#stalled.signal, ...(signal ? [signal] : [])]);
  }

  failed(cause: unknown): unknown {
    this.idle?.close();
    const { method, url, signal } = this.request;
    if (signal?.aborted) return signal.reason;
    const isTimeout = this.#stalled.signal.aborted;
    // `fetch` does not report whether the request was sent, so it counts as sent.
    const message = `${method} ${url}: ${messageOf(isTimeout ? this.#stalled.signal.reason : cause)}`;
    return new TransportError(message, { wasSent: true, isTimeout, isRefused: isRefused(cause), cause });
  }
}

/** Not every `fetch` can send a stream. */
async function readAll(body: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const part of body) parts.push(new Uint8Array(part));
  return new Blob(parts);
}

async function text(response: Response, limits: RequestLimits, maxBytes = MAX_ANSWER_BYTES): Promise<string> {
  try {
    if (Number(response.headers.get("content-length")) > maxBytes) {
      response.body?.cancel().catch(() => {});
      throw new ReadLimitExceeded("bytes", maxBytes);
    }
    return await readBoundedText(chunks(response, limits), { maxBytes });
  } catch (error) {
    throw error instanceof ReadLimitExceeded ? new AnswerLimitError(limits.request, error) : error;
  }
}

async function* chunks(response: Response, limits: RequestLimits): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  try {
    for (;;) {
      limits.idle?.restart();
      const { done, value } = (await reader?.read()) ?? { done: true };
      limits.idle?.stop();
      if (done || value === undefined) return;
      yield value;
    }
  } catch (cause) {
    throw limits.failed(cause);
  } finally {
    limits.idle?.close();
    reader?.cancel().catch(() => {});
  }
}
