import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Dispatcher, Pool } from "undici";
import { endResponse } from "../http/drain.ts";
import { isEndToEnd, isForSandbox } from "./headers.ts";
import { EventFollower, isEventStream } from "./last-event.ts";
import { type LookAhead, RequestBody, type StallLimits } from "./request-body.ts";

export interface RelayOptions {
  readonly pool: Pool;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly maxBodyBytes: number | null;
  readonly lookAhead: LookAhead;
  readonly stall: StallLimits;
  /** Changes the response's headers for the client. */
  readonly rewrite?: (headers: Record<string, string | string[]>) => Record<string, string | string[]>;
  /** Timeout for the whole call. */
  readonly limitMs?: number;
  /** The sandbox was lost in the middle of an event stream. Returns an event to end it with; null if there is none for this request. */
  readonly lastEvent?: (body: Buffer, error: Error) => Promise<string | null>;
}

/** How a relayed call ended. */
export type RelayEnd =
  | { readonly kind: "answered"; readonly status: number }
  | { readonly kind: "lost"; readonly error: Error }
  | { readonly kind: "left" }
  | { readonly kind: "expired" }
  | { readonly kind: "stalled" }
  | { readonly kind: "too_large" };

/** Streams a request to a sandbox and its response back, without parsing bodies. If one side disconnects, the other is closed. */
export function relay(request: IncomingMessage, response: ServerResponse, options: RelayOptions): Promise<RelayEnd> {
  const { pool, path, headers, maxBodyBytes, lookAhead, stall } = options;
  // The client may have disconnected while its instance was looked up.
  if (response.destroyed) return Promise.resolve({ kind: "left" });
  if (Number(request.headers["content-length"]) > (maxBodyBytes ?? Number.POSITIVE_INFINITY)) return Promise.resolve({ kind: "too_large" });
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | null = null;
    let isOver = false;
    let events: EventFollower | null = null;
    const body = bodyOf(request, () => new RequestBody(request, lookAhead, stall, () => cut({ kind: "stalled" })));
    const finish = (end: RelayEnd) => {
      if (isOver) return;
      isOver = true;
      if (body instanceof RequestBody) body.stop();
      clearTimeout(limit);
      resolve(end);
    };
    const cut = (end: RelayEnd) => {
      finish(end);
      controller?.abort(new Error(`the call is over: ${end.kind}`));
    };
    const expire = () => {
      cut({ kind: "expired" });
      if (response.headersSent) response.destroy();
    };
    const limit = options.limitMs === undefined ? undefined : setTimeout(expire, options.limitMs);
    response.once("close", () => response.writableFinished || cut({ kind: "left" }));
    const pieces =
      body instanceof RequestBody && maxBodyBytes !== null ? limited(body, maxBodyBytes, () => cut({ kind: "too_large" })) : body;
    pool.dispatch(
      {
        path,
        method: request.method as Dispatcher.HttpMethod,
        headers,
        body: pieces as Buffer | Readable | null,
      },
      {
        onRequestStart(started) {
          controller = started;
          if (isOver) started.abort(new Error("the call is over"));
        },
        onResponseStart(started, status, answered) {
          if (response.destroyed || isOver) return started.abort(new Error("the client disconnected"));
          // An informational response comes before the real one.
          if (status < 200) return;
          // The head of a stream is sent at once, but together with data that has arrived with it.
          const { socket } = response;
          socket?.cork();
          process.nextTick(() => socket?.uncork());
          const headers = endToEnd(answered);
          // A 204 has no body and must not have a length.
          if (status === 204) delete headers["content-length"];
          const { "content-type": type, "content-encoding": encoding, "content-length": length } = headers;
          if (isEventStream(type?.toString(), encoding?.toString()) && length === undefined) events = new EventFollower();
          response.writeHead(status, options.rewrite?.(headers) ?? headers);
          response.flushHeaders();
        },
        onResponseData(started, chunk) {
          events?.follow(chunk);
          if (response.write(chunk)) return;
          started.pause();
          response.once("drain", () => started.resume());
        },
        onResponseEnd() {
          endResponse(response, "", () => finish({ kind: "answered", status: response.statusCode }));
        },
        onResponseError(_, error) {
          finish({ kind: "lost", error });
          if (!response.headersSent) return;
          // A body that is sent in pieces is not kept, so the request it belongs to is not known.
          if (events?.isBetweenEvents !== true || !Buffer.isBuffer(body) || options.lastEvent === undefined) response.destroy();
          else void options.lastEvent(body, error).then((event) => (event === null ? response.destroy() : endResponse(response, event)));
        },
      },
    );
  });
}

/** The request's body: one buffer if all of it has arrived, as for most calls, else a stream. */
function bodyOf(request: IncomingMessage, inPieces: () => RequestBody): Buffer | RequestBody | null {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (length === undefined && coding === undefined) return null;
  return request.readableLength === Number(length) ? request.read() : inPieces();
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
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && isEndToEnd(name)) kept[name] = value;
  }
  return kept;
}

/** The request's headers for the sandbox: without credentials and routing headers, with the sandbox's own host. */
export function headersForSandbox(request: IncomingMessage, more: Readonly<Record<string, string>>): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = { ...more, host: "localhost" };
  for (const name in request.headers) {
    const value = request.headers[name];
    if (value === undefined || !isForSandbox(name) || Object.hasOwn(more, name)) continue;
    kept[name] = value;
  }
  return kept;
}
