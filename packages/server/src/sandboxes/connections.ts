import { connect, type Socket, type TcpNetConnectOpts } from "node:net";
import type { SandboxAddress } from "@aenv/sandbox";

/** A connection to a sandbox; it serves one call at a time. */
export interface SandboxConnection {
  readonly socket: Socket;
  /** Handlers of the current call. The bytes are valid until the handler returns: their buffer is reused. */
  onData: (bytes: Buffer) => void;
  onClose: (error: Error) => void;
}

interface PooledConnection extends SandboxConnection {
  /** Bytes without a request could be mistaken for the response to the next call. */
  readonly onSurplus: () => void;
  usableUntil: number;
}

const MAX_IDLE_MS = 30_000;
/** A machine or a pod that is gone does not refuse connections, and the system would wait for minutes. */
const CONNECT_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 15_000;
const ignore = () => {};
/** All connections read into one buffer: a read and its handler are one step of the event loop. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** Keep-alive TCP or Unix connections to one sandbox. */
export class SandboxConnections {
  readonly #address: SandboxAddress;
  readonly #connectTimeoutMs: number;
  readonly #all = new Set<PooledConnection>();
  readonly #idle: PooledConnection[] = [];
  #isClosed = false;

  constructor(address: SandboxAddress, connectTimeoutMs = CONNECT_TIMEOUT_MS) {
    this.#address = address;
    this.#connectTimeoutMs = connectTimeoutMs;
  }

  /** The most recently used idle connection, or a new one. */
  acquire(): SandboxConnection {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (performance.now() < idle.usableUntil) return idle;
      idle.socket.destroy();
    }
    return this.#open();
  }

  /** Returns a connection that the sandbox keeps open for `keepMs`. */
  release(connection: SandboxConnection, keepMs: number): void {
    const pooled = connection as PooledConnection;
    pooled.onClose = ignore;
    pooled.onData = pooled.onSurplus;
    if (keepMs <= 0 || pooled.socket.destroyed || this.#isClosed) return void pooled.socket.destroy();
    pooled.usableUntil = performance.now() + Math.min(keepMs, MAX_IDLE_MS);
    this.#idle.push(pooled);
  }

  /** Aborts calls in flight too. */
  destroy(): void {
    this.#isClosed = true;
    for (const { socket } of this.#all) socket.destroy();
  }

  /** Calls in flight finish. */
  close(): void {
    this.#isClosed = true;
    for (const { socket } of this.#idle.splice(0)) socket.destroy();
  }

  #open(): SandboxConnection {
    const address = this.#address;
    // Reading by `onread` skips the stream's queue and its buffers, which cost more than the rest of a short call.
    const onread = {
      buffer: readBuffer,
      callback: (length: number, buffer: Uint8Array) => {
        connection.onData(buffer.subarray(0, length) as Buffer);
        return true;
      },
    };
    const socket = address.kind === "unix" ? connect({ path: address.path, onread }) : this.#dial({ ...address, onread });
    const connection: PooledConnection = {
      socket,
      onData: ignore,
      onClose: ignore,
      onSurplus: () => socket.destroy(),
      usableUntil: 0,
    };
    let failure: Error | null = null;
    this.#all.add(connection);
    socket.on("error", (error) => {
      failure = error;
    });
    socket.on("close", () => {
      this.#all.delete(connection);
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      connection.onClose(failure ?? new Error("the sandbox hung up"));
    });
    return connection;
  }

  #dial(options: TcpNetConnectOpts): Socket {
    const socket = connect({ ...options, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS });
    const late = setTimeout(() => {
      socket.destroy(new Error(`the sandbox accepted no connection within ${this.#connectTimeoutMs} ms`));
    }, this.#connectTimeoutMs);
    const end = () => clearTimeout(late);
    return socket.once("connect", end).once("close", end);
  }
}
