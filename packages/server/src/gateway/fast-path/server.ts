import { type IncomingMessage, type RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type HttpLimits, KEEP_ALIVE_MS, limitConnections, serverOptions } from "../../http/limits.ts";
import { retireConnections } from "../../http/retire.ts";
import { Connection, type Dispatch } from "./connection.ts";

/**
 * An HTTP server with a fast path for short calls. A connection begins on the fast path and is handed over to Node's HTTP server,
 * for good, at the first request that is not a plain short one.
 */
export class FastPathServer extends Server {
  readonly #fastConnections = new Set<Connection>();

  #isRetiring = false;

  /** Upgraded connections, which Node's server does not track. */
  readonly #upgraded = new Set<Duplex>();

  /** If `upgrades` returns false, the request is answered as if it had not asked for an upgrade. */
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
        onOver: () => this.#fastConnections.delete(connection),
        handOver: (pending) => {
          this.#fastConnections.delete(connection);
          // The bytes are put back before Node's parser takes the socket; reading resumes after.
          socket.pause();
          if (pending !== null) socket.unshift(pending);
          toHttp.call(this, socket);
          socket.resume();
        },
      });
      this.#fastConnections.add(connection);
      if (this.#isRetiring) connection.retire();
    });
    const { connectionsCheckingInterval } = serverOptions(httpLimits);
    let timer: NodeJS.Timeout;
    this.on("listening", () => {
      timer = setInterval(() => this.#endSilent(httpLimits), connectionsCheckingInterval).unref();
    });
    this.on("close", () => clearInterval(timer));
  }

  /** From now on, connections are closed after their next response, so that clients move to other servers without losing a call. */
  retireConnections(): void {
    this.#isRetiring = true;
    retireConnections(this);
    for (const connection of this.#fastConnections) connection.retire();
  }

  override closeIdleConnections(): void {
    super.closeIdleConnections();
    for (const connection of this.#fastConnections) if (connection.isIdle) connection.end();
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const connection of this.#fastConnections) connection.destroy();
    for (const socket of this.#upgraded) socket.destroy();
  }

  #endSilent({ headersMs }: HttpLimits): void {
    for (const connection of this.#fastConnections) connection.endIfSilent(headersMs, KEEP_ALIVE_MS);
  }
}
