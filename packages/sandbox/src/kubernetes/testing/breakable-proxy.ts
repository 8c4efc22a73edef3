import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";

/** A way to the API server of a cluster that can be cut, as a restart of the server cuts it. */
export class BreakableProxy implements AsyncDisposable {
  readonly port: number;
  readonly #server;
  readonly #sockets = new Set<Socket>();
  #isDown = false;
  #isStuck = false;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  static async open(target: URL): Promise<BreakableProxy> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = new BreakableProxy(server);
    server.on("connection", (socket) => proxy.#join(socket, target));
    return proxy;
  }

  /** Cuts all connections, and accepts no new ones until `restore`. */
  cut(): void {
    this.#isDown = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Connections that exist stay open, and nothing arrives on them any more. */
  stick(): void {
    this.#isStuck = true;
    for (const socket of this.#sockets) socket.pause();
  }

  restore(): void {
    this.#isDown = false;
    this.#isStuck = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(socket: Socket, target: URL): void {
    if (this.#isDown) {
      socket.destroy();
      return;
    }
    const upstream = createConnection({ host: target.hostname, port: Number(target.port || 443) });
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      this.#sockets.add(from);
      from.on("error", () => undefined);
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on("data", (data) => {
        // What was on its way when the connection got stuck is lost.
        if (!this.#isStuck || !from.isPaused()) to.write(data);
      });
      from.on("end", () => to.end());
    }
  }
}
