import { connect, type Socket } from "node:net";
import type { SandboxAddress } from "@aenv/sandbox";

/** A connection to a sandbox; it serves one call at a time. */
export interface SandboxConnection {
  readonly socket: Socket;
  /** Handlers of the current call. */
  onData: (bytes: Buffer) => void;
  onClose: (error: Error) => void;
}

interface IdleConnection {
  readonly connection: SandboxConnection;
  readonly usableUntil: number;
}

const MAX_IDLE_MS = 30_000;
const ignore = () => {};

/** Keep-alive TCP or Unix connections to one sandbox. */
export class SandboxConnections {
  readonly #address: SandboxAddress;
  readonly #all = new Set<SandboxConnection>();
  readonly #idle: IdleConnection[] = [];
  #isClosed = false;

  constructor(address: SandboxAddress) {
    this.#address = address;
  }

  /** The most recently used idle connection, or a new one. */
  acquire(): SandboxConnection {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (performance.now() < idle.usableUntil) return idle.connection;
      idle.connection.socket.destroy();
    }
    return this.#open();
  }

  /** Returns a connection that the sandbox keeps open for `keepMs`. */
  release(connection: SandboxConnection, keepMs: number): void {
    connection.onClose = ignore;
    // Bytes without a request could be mistaken for the response to the next call.
    connection.onData = () => connection.socket.destroy();
    if (keepMs <= 0 || connection.socket.destroyed || this.#isClosed) return void connection.socket.destroy();
    this.#idle.push({ connection, usableUntil: performance.now() + Math.min(keepMs, MAX_IDLE_MS) });
  }

  /** Aborts calls in flight too. */
  destroy(): void {
    this.#isClosed = true;
    for (const { socket } of this.#all) socket.destroy();
  }

  /** Calls in flight finish. */
  close(): void {
    this.#isClosed = true;
    for (const { connection } of this.#idle.splice(0)) connection.socket.destroy();
  }

  #open(): SandboxConnection {
    const address = this.#address;
    const socket = connect(address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port, noDelay: true });
    const connection: SandboxConnection = { socket, onData: ignore, onClose: ignore };
    let failure = new Error("the sandbox hung up");
    this.#all.add(connection);
    socket.on("data", (bytes) => connection.onData(bytes));
    socket.on("error", (error) => {
      failure = error;
    });
    socket.on("close", () => {
      this.#all.delete(connection);
      const at = this.#idle.findIndex((idle) => idle.connection === connection);
      if (at >= 0) this.#idle.splice(at, 1);
      connection.onClose(failure);
    });
    return connection;
  }
}
