import { messageOf } from "@aenv/contract";
import { Agent, type Dispatcher } from "undici";
import { type HttpAnswer, type HttpRequest, type Transport, TransportError } from "../http.ts";

// One set of pools for the process: ten thousand environments behind one gateway share its connections.
// An idle socket does not hold the process, so nobody has to close this. Deadlines are ours, not undici's:
// a long tool call may be silent for as long as its own time allows.
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });

/** Carries requests by undici, with keep-alive. */
export const defaultTransport: Transport = undiciTransport(agent);

export function undiciTransport(dispatcher: Dispatcher): Transport {
  return { send: (request) => send(dispatcher, request) };
}

async function send(dispatcher: Dispatcher, request: HttpRequest): Promise<HttpAnswer> {
  const { origin, pathname, search } = new URL(request.url);
  let data: Dispatcher.ResponseData;
  try {
    data = await dispatcher.request({
      origin,
      path: pathname + search,
      method: request.method as Dispatcher.HttpMethod,
      headers: request.headers as Record<string, string>,
      body: request.body ?? null,
      signal: request.signal ?? null,
    });
  } catch (cause) {
    throw failed(request, cause);
  }
  return {
    status: data.statusCode,
    header: (name) => {
      const value = data.headers[name.toLowerCase()];
      return Array.isArray(value) ? value.join(", ") : (value ?? null);
    },
    text: () => data.body.text().catch((cause) => Promise.reject(failed(request, cause))),
    chunks: () => chunks(request, data.body),
  };
}

async function* chunks(request: HttpRequest, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (cause) {
    throw failed(request, cause);
  }
}

function failed(request: HttpRequest, cause: unknown): unknown {
  if (request.signal?.aborted) return request.signal.reason;
  return new TransportError(`${request.method} ${request.url}: ${messageOf(cause)}`, { wasSent: !neverLeft(cause), cause });
}

/** True when the connection was never made: no such name, refused, or no answer to the handshake. */
function neverLeft(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(neverLeft);
  if (!(error instanceof Error)) return false;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return code === "UND_ERR_CONNECT_TIMEOUT" || syscall === "connect" || syscall === "getaddrinfo";
}
