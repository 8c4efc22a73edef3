import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Failure } from "../terminal/failure.ts";

/** Where a new connection goes: to a sandbox, to a queue until there is one, or back with a reason. */
type Target = { to: string } | { wait: true } | { refuse: string };

/**
 * Holds the TCP port while sandboxes come and go behind it. A connection stays with the sandbox it began with, so that calls
 * in flight end where they started.
 */
export class Relay {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #waiting: Socket[] = [];
  #target: Target = { wait: true };

  constructor() {
    // Half-open on purpose: a client may end its side before the answer is out.
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => this.#accept(client));
  }

  async listen(host: string, port: number): Promise<number> {
    this.#server.listen({ host, port });
    try {
      await once(this.#server, "listening");
    } catch (error) {
      throw cannotListen(error as NodeJS.ErrnoException, host, port);
    }
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on connections go to the sandbox at this socket; those that waited go first. */
  use(socketPath: string): void {
    this.#turn({ to: socketPath });
  }

  /** Connections wait until there is a sandbox. */
  hold(): void {
    this.#turn({ wait: true });
  }

  /** Connections are told why there is no sandbox. */
  refuse(reason: string): void {
    this.#turn({ refuse: reason });
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  #turn(target: Target): void {
    this.#target = target;
    const waited = this.#waiting;
    this.#waiting = [];
    for (const client of waited) this.#pass(client);
  }

  #accept(client: Socket): void {
    this.#open.add(client);
    client.on("error", () => client.destroy());
    client.on("close", () => this.#open.delete(client));
    this.#pass(client);
  }

  #pass(client: Socket): void {
    if (client.destroyed) return;
    if ("wait" in this.#target) this.#waiting.push(client);
    else if ("refuse" in this.#target) sendUnavailable(client, this.#target.refuse);
    else this.#join(client, this.#target.to);
  }

  #join(client: Socket, path: string): void {
    const sandbox = connect({ path, allowHalfOpen: true });
    this.#open.add(sandbox);
    let hasConnected = false;
    sandbox.on("connect", () => {
      hasConnected = true;
      client.pipe(sandbox);
      sandbox.pipe(client);
    });
    sandbox.on("error", () => sandbox.destroy());
    sandbox.on("close", () => {
      this.#open.delete(sandbox);
      // What the sandbox has said is still on its way to a slow client.
      if (hasConnected) client.destroySoon();
      // The sandbox went between two connections: nothing was sent yet, so the next one may have it.
      else if ("to" in this.#target && this.#target.to === path) client.destroy();
      else this.#pass(client);
    });
    client.on("close", () => sandbox.destroy());
  }
}

/** An answer in the sandbox's own form, for a client whose request nobody has read. */
function sendUnavailable(client: Socket, reason: string): void {
  const body = JSON.stringify({ success: false, error: reason, errorInfo: { code: "environment.unhealthy", retryable: true } });
  client.resume();
  client.end(
    `HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Failure {
  const hints: Readonly<Record<string, string>> = {
    EADDRINUSE: "Stop the other one, or take any free port with: aenv run --port 0",
    EACCES: "Ports below 1024 need special rights; choose a higher one with --port.",
    EADDRNOTAVAIL: "That address is not one of this machine's; try --host 127.0.0.1.",
    ENOTFOUND: "That address is not one of this machine's; try --host 127.0.0.1.",
  };
  const what =
    error.code === "EADDRINUSE" ? `port ${port} on ${host} is in use already` : `cannot listen on ${host}:${port}: ${error.message}`;
  return new Failure(what, { code: error.code ?? "internal", hint: hints[error.code ?? ""], cause: error });
}
