import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { renameSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";

/** A unix socket whose connections lead to a port in a sandbox. */
export class Forwarder {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #hasConnected = false;

  private constructor(connect: () => Promise<Duplex>) {
    this.#server = createServer({ pauseOnConnect: true }, (socket) => void this.#forward(socket, connect));
  }

  /**
   * Listens at the path. A socket that another process had there is replaced at once: clients find the one or the other, and never
   * none. Its connections go on.
   */
  static async open(path: string, connect: () => Promise<Duplex>): Promise<Forwarder> {
    const forwarder = new Forwarder(connect);
    const part = `${path}.${randomBytes(3).toString("hex")}`;
    forwarder.#server.listen(part);
    await once(forwarder.#server, "listening");
    renameSync(part, path);
    return forwarder;
  }

  /** Whether the port has accepted a connection. */
  get hasConnected(): boolean {
    return this.#hasConnected;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #forward(socket: Socket, connect: () => Promise<Duplex>): Promise<void> {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
    try {
      const inner = await connect();
      this.#hasConnected = true;
      if (socket.destroyed) inner.destroy();
      else pipeline(socket, inner, socket, () => undefined);
    } catch {
      // As if nothing listened: the client sees a connection that ends without an answer.
      socket.destroy();
    }
  }
}

/** Whether a process listens at a unix socket. */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
