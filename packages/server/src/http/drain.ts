import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, finished } from "node:stream";

// An answer may come before all of its request has come. What is still on its way is read and thrown away for a while: a client
// that sends first and reads then would wait for ever, lose the answer together with the connection, or find that connection
// blocked for its next request.

/** How long a client may go on sending what nobody will read. */
const LINGER_MS = 2_000;

/** Ends an answer, and its request if need be. */
export function endAnswer(response: ServerResponse, last: string, onEnd: () => void = () => {}): void {
  const { req: request } = response;
  if (response.shouldKeepAlive || isOver(request)) {
    response.end(last, onEnd);
    endRequest(request);
  } else {
    // Node closes this connection with the answer's end, so that has to wait.
    if (last !== "") response.write(last);
    throwAway(request, () => response.end(onEnd));
  }
}

/** The same for an answer that has been sent: only the request is left. */
export function endRequest(request: IncomingMessage): void {
  throwAway(request, () => request.complete || request.destroy());
}

/** The same for a connection without a request: a last word, and what still comes is thrown away. */
export function endConnection(socket: Duplex, last: Buffer): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.once("end", () => socket.destroy());
  socket.resume().end(last);
}

function throwAway(request: IncomingMessage, onOver: () => void): void {
  if (isOver(request)) return;
  const timer = setTimeout(onOver, LINGER_MS);
  finished(request.on("data", () => {}).resume(), () => {
    clearTimeout(timer);
    onOver();
  });
}

function isOver(request: IncomingMessage): boolean {
  return request.complete || request.destroyed;
}
