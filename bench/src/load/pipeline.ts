import { once } from "node:events";
import { connect, type Socket } from "node:net";

const CONNECTIONS = 32;
/** Requests that are sent at a time on each connection. */
const AT_ONCE = 32;

/** Sends many requests at a time, and only counts the bytes of their responses: far cheaper than the server that answers them. */
export class Pipeline implements AsyncDisposable {
  readonly #sockets: readonly Socket[];
  readonly #requests: Buffer;
  readonly #answerBytes: number;

  private constructor(sockets: readonly Socket[], request: string, answerBytes: number) {
    this.#sockets = sockets;
    this.#requests = Buffer.from(request.repeat(AT_ONCE));
    this.#answerBytes = answerBytes;
  }

  /** Opens a connection to a server whose responses to `GET /health` all have the same length. */
  static async open(url: string): Promise<Pipeline> {
    const { hostname, port, host } = new URL(url);
    const request = `GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
    const sockets = await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        const socket = connect({ host: hostname, port: Number(port), noDelay: true });
        await once(socket, "connect");
        return socket;
      }),
    );
    const [first] = sockets as [Socket, ...Socket[]];
    first.write(request);
    const [answer] = (await once(first, "data")) as [Buffer];
    first.removeAllListeners("data");
    return new Pipeline(sockets, request, answer.length);
  }

  /** Requests per second. */
  async measure(ms: number): Promise<number> {
    const startedAt = performance.now();
    const counts = await Promise.all(this.#sockets.map((socket) => this.#use(socket, startedAt + ms)));
    return (counts.reduce((sum, count) => sum + count, 0) * 1_000) / (performance.now() - startedAt);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
  }

  #use(socket: Socket, endsAt: number): Promise<number> {
    const batch = AT_ONCE * this.#answerBytes;
    return new Promise((resolve, reject) => {
      let count = 0;
      let bytes = 0;
      const onData = (read: Buffer) => {
        bytes += read.length;
        if (bytes < batch) return;
        bytes = 0;
        count += AT_ONCE;
        if (performance.now() < endsAt) return void socket.write(this.#requests);
        socket.off("data", onData);
        socket.off("close", onClose);
        resolve(count);
      };
      const onClose = () => reject(new Error("the server closed a connection that is measured"));
      socket.on("data", onData);
      socket.once("close", onClose);
      socket.write(this.#requests);
    });
  }
}
