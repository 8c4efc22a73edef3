import { type IncomingMessage, type RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type HttpLimits, KEEP_ALIVE_MS, limitConnections, serverOptions } from "../../http/limits.ts";
import { Connection, type Dispatch } from "./connection.ts";

/**
 * An HTTP server with a fast path for short calls: a connection begins with our own reader, and goes over to Node's, for good,
 * at the first request that is not a plain short one.
 */
export class FastPathServer extends Server {
  readonly #express = new Set<Connection>();

  /** Connections that have left HTTP behind; Node does not count these. */
  readonly #upgraded = new Set<Duplex>();

  /** What `upgrades` says no to is answered as if no upgrade had been offered. */
  constructor(httpLimits: HttpLimits, dispatch: Dispatch, listener: RequestListener, upgrades: (request: IncomingMessage) => boolean) {
    super({ ...serverOptions(httpLimits), shouldUpgradeCallback: upgrades }, listener);
    this.on("upgrade", (_, socket) => {
      this.#upgraded.add(socket);
      socket.once("close", () => this.#upgraded.delete(socket));
    });
    limitConnections(this, httpLimits);
    const [toHttp] = this.listeners("connection") as [(socket: Socket) => void];
    this.off("connection", toHttp);
    this.on("connection", (socket: Socket) => {
      const connection = new Connection(socket, {
        dispatch,
        onOver: () => this.#express.delete(connection),
        handOver: (pending) => {
          this.#express.delete(connection);
          // Put back before Node's parser takes the socket, and let go after.
          socket.pause();
          if (pending !== null) socket.unshift(pending);
          toHttp.call(this, socket);
          socket.resume();
        },
      });
      this.#express.add(connection);
    });
    const { connectionsCheckingInterval } = serverOptions(httpLimits);
    let round: NodeJS.Timeout;
    this.on("listening", () => {
      round = setInterval(() => this.#endSilent(httpLimits), connectionsCheckingInterval).unref();
    });
    this.on("close", () => clearInterval(round));
  }

  override closeIdleConnections(): void {
    super.closeIdleConnections();
    for (const connection of this.#express) if (connection.isIdle) connection.end();
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const connection of this.#express) connection.destroy();
    for (const socket of this.#upgraded) socket.destroy();
  }

  #endSilent({ headersMs }: HttpLimits): void {
    for (const connection of this.#express) connection.endIfSilent(headersMs, KEEP_ALIVE_MS);
  }
}
