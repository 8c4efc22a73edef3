import { type ClientHttp2Session, connect } from "node:http2";
import type { Duplex } from "node:stream";
import { LISTEN_PORT, LISTEN_PROTOCOL, PlatformError } from "@aenv/contract";
import type { ListeningPort } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered } from "../sandboxes/init-failure.ts";
import { OpenCounts } from "../sandboxes/open-counts.ts";
import type { SandboxAccess } from "./sandbox-access.ts";

export interface ListenerLimits {
  /** Ports of one instance that this server listens on at the same time. */
  readonly perInstance: number;
  /** How often a client is asked whether it is still there. One that does not answer until the next time is gone. */
  readonly pingEveryMs: number;
  /** A connection without a byte in this time is closed. A model may think for long. */
  readonly idleMs: number;
}

const LIMITS: ListenerLimits = { perInstance: 8, pingEveryMs: 30_000, idleMs: 60 * 60_000 };
const WINDOW_BYTES = 256 * 1_024;

/**
 * Ports inside sandboxes on which clients listen. Programs in the sandbox connect to them, and their bytes are passed on to the client that
 * has asked for the port, over the connection of its request. So the client decides where they lead; this server connects to nothing.
 */
export class Listeners {
  readonly #access: SandboxAccess;
  readonly #limits: ListenerLimits;
  readonly #open = new Set<Duplex>();
  /** How many ports are listened on, by instance. */
  readonly #counts = new OpenCounts();

  constructor(access: SandboxAccess, limits: ListenerLimits = LIMITS) {
    this.#access = access;
    this.#limits = limits;
  }

  /** Listens until the client or the sandbox is gone. Throws if that is not possible; the client has got no answer then. */
  async serve(socket: Duplex, id: string, port: number, caller: Caller): Promise<void> {
    const gone = new AbortController();
    socket.once("close", () => gone.abort(new PlatformError("request.cancelled", "the client disconnected")));
    const counted = this.#count(id);
    let sandbox: OpenSandbox | null = null;
    let session: ClientHttp2Session | null = null;
    let listening: ListeningPort;
    try {
      sandbox = await this.#access.open(id, caller, gone.signal);
      // Connections that come before the session are closed: their client was not told the port yet.
      const pass = (connection: Duplex) => (session === null ? void connection.destroy() : this.#pass(connection, session, listening.port));
      listening = await answered(sandbox.init.listen(port, pass));
    } catch (error) {
      sandbox?.release();
      counted[Symbol.dispose]();
      throw error;
    }
    this.#open.add(socket);
    session = this.#answer(socket, listening.port);
    const pings = keepAlive(session, this.#limits.pingEveryMs);
    void listening.closed.then(() => session.destroy());
    session.once("close", () => {
      clearInterval(pings);
      this.#open.delete(socket);
      listening.close();
      socket.destroy();
      sandbox.release();
      counted[Symbol.dispose]();
    });
    if (gone.signal.aborted) session.destroy();
  }

  /** Closes all ports. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #answer(socket: Duplex, port: number): ClientHttp2Session {
    const head = ["HTTP/1.1 101 Switching Protocols", "connection: upgrade", `upgrade: ${LISTEN_PROTOCOL}`, `${LISTEN_PORT}: ${port}`];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    // Sockets of an HTTP server stay half open, and the session would not notice that the client is gone.
    socket.allowHalfOpen = false;
    const settings = { initialWindowSize: WINDOW_BYTES, enablePush: false };
    const session = connect("http://sandbox", { createConnection: () => socket, settings, maxSessionMemory: 100 });
    session.on("error", () => {});
    return session;
  }

  /** Passes the bytes of a connection on to the client. When one side closes, so does the other. */
  #pass(connection: Duplex, session: ClientHttp2Session, port: number): void {
    if (session.closed || session.destroyed) return void connection.destroy();
    const stream = session.request({ ":method": "CONNECT", ":authority": `127.0.0.1:${port}` });
    stream.setTimeout(this.#limits.idleMs, () => stream.destroy());
    stream.on("error", () => {}).once("close", () => connection.destroy());
    connection.on("error", () => {}).once("close", () => stream.close());
    connection.pipe(stream).pipe(connection);
  }

  #count(id: string): Disposable {
    const { perInstance: limit } = this.#limits;
    return this.#counts.open(id, limit, (count) => {
      const message = `${count} ports inside the sandbox of instance '${id}' are listened on already, the server's limit; close one`;
      return new PlatformError("quota.exceeded", message, { details: { limit } });
    });
  }
}

function keepAlive(session: ClientHttp2Session, everyMs: number): NodeJS.Timeout {
  let isWaiting = false;
  return setInterval(() => {
    if (isWaiting || session.destroyed) return session.destroy();
    isWaiting = true;
    session.ping((error) => {
      isWaiting = error !== null;
    });
  }, everyMs).unref();
}
