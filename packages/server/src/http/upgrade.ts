import type { IncomingMessage } from "node:http";
import { LISTEN_PROTOCOL } from "@aenv/contract";

/** True if the client requests a WebSocket; other upgrades, such as to HTTP/2, may be ignored. */
export function asksForWebSocket({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** True if the client wants to listen on a port inside a sandbox. */
export function asksToListen({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers.upgrade === LISTEN_PROTOCOL;
}
