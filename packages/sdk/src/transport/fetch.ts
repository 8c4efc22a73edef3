import { messageOf } from "@aenv/contract";
import { type HttpAnswer, type HttpRequest, isRefused, type Transport, TransportError } from "../http.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Carries requests by `fetch`: the browser's, or one of your own with a proxy or certificates behind it. */
export function fetchTransport(fetch: Fetch): Transport {
  return { send: (request) => send(fetch, request) };
}

async function send(fetch: Fetch, request: HttpRequest): Promise<HttpAnswer> {
  const { url, signal, body, ...rest } = request;
  let response: Response;
  try {
    const sent = body === undefined || typeof body === "string" ? body : await whole(body);
    // A redirect is an answer like any other: followed, it would take the headers, which may hold a token, to another host.
    response = await fetch(url, { ...rest, redirect: "manual", ...(sent !== undefined && { body: sent }), ...(signal && { signal }) });
  } catch (cause) {
    throw failed(request, cause);
  }
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    text: () => response.text().catch((cause) => Promise.reject(failed(request, cause))),
    chunks: () => chunks(request, response),
  };
}

/** Not every `fetch` can send a stream. */
async function whole(body: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const part of body) parts.push(new Uint8Array(part));
  return new Blob(parts);
}

async function* chunks(request: HttpRequest, response: Response): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (cause) {
    throw failed(request, cause);
  } finally {
    reader.cancel().catch(() => {});
  }
}

function failed(request: HttpRequest, cause: unknown): unknown {
  if (request.signal?.aborted) return request.signal.reason;
  // `fetch` does not tell how far it came, so nothing is proven.
  return new TransportError(`${request.method} ${request.url}: ${messageOf(cause)}`, { wasSent: true, isRefused: isRefused(cause), cause });
}
