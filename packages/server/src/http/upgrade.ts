import type { IncomingMessage } from "node:http";

/** True if the client requests a WebSocket; other upgrades, such as to HTTP/2, may be ignored. */
export function asksForWebSocket({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}
