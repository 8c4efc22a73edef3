import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Agent, Dispatcher } from "undici";
import { endAnswer } from "../linger.ts";

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
  // It may have hung up while we looked for its instance: what nobody waits for is not begun.
  if (response.destroyed) return Promise.resolve({ kind: "left" });
  if (Number(request.headers["content-length"]) > (options.maxBodyBytes ?? Number.POSITIVE_INFINITY))
    return Promise.resolve({ kind: "too_large" });
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
    const onTooLarge = () => {
      finish({ kind: "too_large" });
      controller?.abort(new Error("the body is too large"));
    };
    options.agent.dispatch(
      {
        origin: options.origin,
        path: options.path,
        method: request.method as Dispatcher.HttpMethod,
        headers: options.headers,
        body: bodyOf(request, options.maxBodyBytes, onTooLarge) as Readable | null,
      },
      {
        onRequestStart(started) {
          controller = started;
          if (isOver) started.abort(new Error("the client went away"));
        },
        onResponseStart(started, status, headers) {
          if (response.destroyed || isOver) return started.abort(new Error("the client went away"));
          // A hint, not the answer yet.
          if (status < 200) return;
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
          endAnswer(response, "", () => finish({ kind: "answered", status: response.statusCode }));
        },
        onResponseError(_, error) {
          finish({ kind: "lost", error });
          if (response.headersSent) response.destroy();
        },
      },
    );
  });
}

/**
 * The request's body, piece by piece. Not the request itself: what stops to take it would destroy it, and so hang up on a client
 * that has yet to be told why.
 */
function bodyOf(request: IncomingMessage, maxBytes: number | null, onTooLarge: () => void): AsyncIterable<Buffer> | null {
  if (request.headers["content-length"] === undefined && request.headers["transfer-encoding"] === undefined) return null;
  const pieces = request.iterator({ destroyOnReturn: false });
  return maxBytes === null ? pieces : limited(pieces, maxBytes, onTooLarge);
}

async function* limited(pieces: AsyncIterable<Buffer>, maxBytes: number, onTooLarge: () => void): AsyncIterable<Buffer> {
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) return onTooLarge();
    yield piece;
  }
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
