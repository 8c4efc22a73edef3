import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, finished } from "node:stream";

// A response may be complete before all of its request has arrived. The rest of the request is read and discarded for a while.
// Otherwise a client that sends everything before it reads would wait for ever, or would lose the response with the connection. Nor
// could it send its next request on that connection.

/** How long a client may keep sending a request whose rest is discarded. */
const DRAIN_MS = 2_000;

/** Ends a response, and discards the rest of its request. */
export function endResponse(response: ServerResponse, last: string, onEnd: () => void = () => {}): void {
  const { req: request } = response;
  if (response.shouldKeepAlive || isReceived(request)) {
    response.end(last, onEnd);
    discardRequest(request);
  } else {
    // Node closes this connection at the end of the response, so the request is drained first.
    if (last !== "") response.write(last);
    drain(request, () => response.end(onEnd));
  }
}

/** Discards the rest of a request whose response was sent. */
export function discardRequest(request: IncomingMessage): void {
  drain(request, () => request.complete || request.destroy());
}

/** Sends the last bytes on a raw connection, and discards what is still received. */
export function endConnection(socket: Duplex, last: Buffer): void {
  const timer = setTimeout(() => socket.destroy(), DRAIN_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.once("end", () => socket.destroy());
  socket.resume().end(last);
}

function drain(request: IncomingMessage, onReceived: () => void): void {
  if (isReceived(request)) return;
  const timer = setTimeout(onReceived, DRAIN_MS);
  finished(request.on("data", () => {}).resume(), () => {
    clearTimeout(timer);
    onReceived();
  });
}

function isReceived(request: IncomingMessage): boolean {
  return request.complete || request.destroyed;
}
