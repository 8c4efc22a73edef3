import type { Socket } from "node:net";
import { KEEP_ALIVE_MS } from "../../http/limits.ts";
import type { SandboxConnection, SandboxConnections } from "../../sandboxes/connections.ts";
import { readShortRequest, type ShortRequest } from "./head.ts";
import { ResponseReader } from "./response.ts";

export interface ForwardEnd {
  readonly kind: "answered" | "left" | "lost";
  readonly status: number;
  /** Why the sandbox was lost. */
  readonly error?: Error;
}

/** A short call that was admitted. Either `onEnd` or `onLost` is called, once. */
export interface Forward {
  readonly connections: SandboxConnections;
  /** The request's head as the sandbox gets it. */
  readonly head: string;
  /** Prefix for the id of an MCP session in the response. */
  readonly sessionTag: string | undefined;
  onEnd(end: ForwardEnd): void;
  /** The sandbox was lost before the client got any of its response. Returns the response to send instead. */
  onLost(error: Error): Promise<Answer>;
  /** The sandbox was lost in the middle of an event stream. Returns an event to end it with; null if there is none for this request. */
  lastEvent(body: Buffer, error: Error): Promise<string | null>;
}

/** A whole response, with this `connection` header. */
export type Answer = (connection: string) => Buffer;

/** Admits a call, or returns a response to send at once, or null for a call that must take the regular path. */
export type Dispatch = (request: ShortRequest, socket: Socket) => Dispatched | Promise<Dispatched>;
export type Dispatched = Forward | Answer | null;

export interface ConnectionOptions {
  readonly dispatch: Dispatch;
  /** Gives the socket, and the bytes that were read but not used, to Node's HTTP server. */
  readonly handOver: (pending: Buffer | null) => void;
  readonly onOver: () => void;
}

/** Limit for requests that a client sends before it has the response to the current one; above it, reading is paused. */
const MAX_AHEAD_BYTES = 64 * 1024;
/** The `connection` header of a response, with the idle timeout, so that clients do not send on a connection that is about to be closed. */
const KEEP_ALIVE = `keep-alive\r\nkeep-alive: timeout=${KEEP_ALIVE_MS / 1_000}`;

const CLOSE = "close";

/** A client's connection, as long as it sends only short calls. It handles one call at a time. */
export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #response = new ResponseReader();
  #pending: Buffer | null = null;
  #isBusy = false;
  #isEnding = false;
  #isRetiring = false;
  /** Whether the response in progress has told the client that the connection is closed after it. */
  #hasSaidClose = false;
  #lastRequest: ShortRequest | null = null;
  #lastReadAt = performance.now();
  /** The call that waits for its sandbox, and the connection it uses. */
  #forward: Forward | null = null;
  #sandbox: SandboxConnection | null = null;
  /** The body of its request. */
  #body: Buffer | null = null;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
    socket.on("error", ignore);
  }

  get isIdle(): boolean {
    return !this.#isBusy && this.#pending === null;
  }

  /** Closes the connection, after the current call if there is one. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isBusy) this.#socket.end();
  }

  /** Closes the connection after its next response, which says so. Until then it stays open: the client may be sending already. */
  retire(): void {
    this.#isRetiring = true;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Applies the timeouts for the first request and for the next one. */
  endIfSilent(firstRequestMs: number, nextRequestMs: number): void {
    const limitMs = this.#lastRequest !== null && this.#pending === null ? nextRequestMs : firstRequestMs;
    if (this.#isBusy || performance.now() - this.#lastReadAt < limitMs) return;
    // Within a request, Node's own timeouts apply.
    if (this.#pending === null) this.destroy();
    else this.#handOver();
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#lastReadAt = performance.now();
    this.#pending = this.#pending === null ? bytes : Buffer.concat([this.#pending, bytes]);
    if (!this.#isBusy) this.#next(this.#pending);
    else if (this.#pending.length > MAX_AHEAD_BYTES) this.#socket.pause();
  };

  readonly #onEnd = (): void => {
    if (this.#forward !== null) this.#finish("left");
    this.#socket.end();
  };

  readonly #onClose = (): void => {
    if (this.#forward !== null) this.#finish("left");
    this.#options.onOver();
  };

  #next(pending: Buffer): void {
    const request = readShortRequest(pending, this.#lastRequest);
    // Some clients send head and body in two packets.
    if (request === "unfinished") return;
    if (request === "other") {
      this.#handOver();
      return;
    }
    this.#isBusy = true;
    this.#lastRequest = request;
    const dispatched = this.#options.dispatch(request, this.#socket);
    if (dispatched instanceof Promise) void dispatched.then((one) => this.#carry(request, one));
    else this.#carry(request, dispatched);
  }

  #carry(request: ShortRequest, dispatched: Dispatched): void {
    const isGone = this.#socket.destroyed || this.#socket.readableEnded;
    if (dispatched === null) {
      if (!isGone) this.#handOver();
      return;
    }
    const pending = this.#pending as Buffer;
    this.#pending = pending.length > request.end ? pending.subarray(request.end) : null;
    if (typeof dispatched === "function") this.#respond(dispatched);
    else if (isGone) dispatched.onEnd({ kind: "left", status: 0 });
    else this.#send(dispatched, pending.subarray(request.bodyAt, request.end));
  }

  #send(forward: Forward, body: Buffer): void {
    const sandbox = forward.connections.acquire();
    this.#forward = forward;
    this.#sandbox = sandbox;
    this.#body = body;
    this.#response.start(forward.sessionTag);
    sandbox.onData = this.#onSandboxData;
    sandbox.onClose = this.#onSandboxClose;
    sandbox.socket.write(joinHead(forward.head, body));
  }

  readonly #onSandboxData = (bytes: Buffer): void => {
    const response = this.#response;
    const isHead = response.status === 0;
    const header = this.#connectionHeader();
    let forClient: Buffer;
    try {
      forClient = response.read(bytes, header);
      if (isHead && response.status !== 0) this.#hasSaidClose = header === CLOSE;
    } catch (error) {
      this.#lose(error as Error);
      return;
    }
    if (forClient.length > 0 && !this.#socket.write(forClient) && !response.isOver) this.#pauseSandbox();
    if (!response.isOver) return;
    this.#finish("answered");
    this.#rest();
  };

  readonly #onSandboxClose = (error: Error): void => {
    if (this.#response.endByClose()) {
      this.#finish("answered");
      this.#socket.end();
    } else this.#lose(error);
  };

  #pauseSandbox(): void {
    const { socket } = this.#sandbox as SandboxConnection;
    socket.pause();
    this.#socket.once("drain", () => socket.resume());
  }

  #lose(error: Error): void {
    if (this.#response.status === 0) {
      const forward = this.#release();
      void forward.onLost(error).then((response) => this.#respond(response));
    } else {
      const [forward, body] = [this.#forward as Forward, this.#body as Buffer];
      const isBetweenEvents = this.#response.isBetweenEvents;
      this.#finish("lost", error);
      if (isBetweenEvents) void forward.lastEvent(body, error).then((event) => this.#endStream(event));
      else this.#socket.destroy();
    }
  }

  #endStream(event: string | null): void {
    if (event === null) {
      this.#socket.destroy();
      return;
    }
    const chunk = Buffer.from(event);
    if (!this.#socket.destroyed)
      this.#socket.write(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n0\r\n\r\n")]));
    this.#rest();
  }

  #finish(kind: ForwardEnd["kind"], error?: Error): void {
    const { status } = this.#response;
    this.#release().onEnd(error === undefined ? { kind, status } : { kind, status, error });
  }

  /** Returns the sandbox's connection to its pool. */
  #release(): Forward {
    const forward = this.#forward as Forward;
    forward.connections.release(this.#sandbox as SandboxConnection, this.#response.sandboxKeepsMs);
    this.#forward = null;
    this.#sandbox = null;
    this.#body = null;
    return forward;
  }

  /** Ready for the next call. */
  #rest(): void {
    this.#isBusy = false;
    this.#lastReadAt = performance.now();
    if (this.#socket.destroyed) return;
    if (this.#isEnding || this.#hasSaidClose) {
      this.#socket.end();
      return;
    }
    if (this.#socket.isPaused()) this.#socket.resume();
    if (this.#pending !== null) this.#next(this.#pending);
  }

  #respond(answer: Answer): void {
    const header = this.#connectionHeader();
    this.#hasSaidClose = header === CLOSE;
    if (!this.#socket.destroyed) this.#socket.write(answer(header));
    this.#rest();
  }

  /** A client that was not told may send its next request while the connection is closed, and lose it. */
  #connectionHeader(): string {
    return this.#isEnding || this.#isRetiring ? CLOSE : KEEP_ALIVE;
  }

  #handOver(): void {
    const socket = this.#socket;
    socket.off("data", this.#onData);
    socket.off("end", this.#onEnd);
    socket.off("close", this.#onClose);
    socket.off("error", ignore);
    this.#options.handOver(this.#pending);
  }
}

function ignore(): void {
  // A broken connection also emits `close`.
}

/** One buffer, so that head and body are one write. */
export function joinHead(head: string, body: Buffer): Buffer {
  const whole = Buffer.allocUnsafe(head.length + body.length);
  whole.write(head, 0, "latin1");
  whole.set(body, head.length);
  return whole;
}
