import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Failure } from "../terminal/failure.ts";

/** The path of a sandbox's socket, or where a program listens. */
export type RelayTarget = string | { readonly host: string; readonly port: number };

/** What happens to a new connection: it goes to a sandbox, waits for one, or is refused with a reason. */
type Target = { to: RelayTarget } | { wait: true } | { refuse: string };

/**
 * Keeps the TCP port open while sandboxes behind it are replaced. A connection stays with its first sandbox, so that calls in
 * flight finish there.
 */
export class Relay {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #waiting: Socket[] = [];
  #target: Target = { wait: true };

  constructor() {
    // Half-open on purpose: a client may end its side before the response is sent.
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

  /** New connections go to this sandbox; waiting connections go first. */
  use(to: RelayTarget): void {
    this.#setTarget({ to });
  }

  /** New connections wait for a sandbox. */
  hold(): void {
    this.#setTarget({ wait: true });
  }

  /** New connections get a 503 with the reason. */
  refuse(reason: string): void {
    this.#setTarget({ refuse: reason });
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  #setTarget(target: Target): void {
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

  #join(client: Socket, to: RelayTarget): void {
    const sandbox = connect({ ...(typeof to === "string" ? { path: to } : to), allowHalfOpen: true });
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
      // Data of the sandbox may still be buffered for a slow client.
      if (hasConnected) client.destroySoon();
      // The sandbox was replaced before it accepted the connection. Nothing was sent yet, so the next one gets it.
      else if ("to" in this.#target && this.#target.to === to) client.destroy();
      else this.#pass(client);
    });
    client.on("close", () => sandbox.destroy());
  }
}

/** A 503 in the format of a sandbox's errors. The request is not read. */
function sendUnavailable(client: Socket, reason: string): void {
  const body = JSON.stringify({ success: false, error: reason, errorInfo: { code: "environment.unhealthy", retryable: true } });
  client.resume();
  client.end(
    `HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Failure {
  const hints: Readonly<Record<string, string>> = {
    EADDRINUSE: "Stop the other process, or use any free port with: aenv run --port 0",
    EACCES: "Ports below 1024 need special permissions; choose a higher one with --port.",
    EADDRNOTAVAIL: "This machine does not have that address; try --host 127.0.0.1.",
    ENOTFOUND: "This machine does not have that address; try --host 127.0.0.1.",
  };
  const what =
    error.code === "EADDRINUSE" ? `port ${port} on ${host} is already in use` : `cannot listen on ${host}:${port}: ${error.message}`;
  return new Failure(what, { code: error.code ?? "internal", hint: hints[error.code ?? ""], cause: error });
}
