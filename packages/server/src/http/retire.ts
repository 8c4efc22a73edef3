import type { Server } from "node:http";

/** From now on, the responses of Node's HTTP server say that their connection is closed, and it is. Idle connections stay open. */
export function retireConnections(server: Server): void {
  server.prependListener("request", (_, response) => {
    response.shouldKeepAlive = false;
  });
}
