import type { Socket } from "node:net";
import { KEEP_ALIVE_MS } from "../../http/limits.ts";
import type { SandboxConnection, SandboxConnections } from "../../sandboxes/connections.ts";
import { readShortRequest, type ShortRequest } from "./head.ts";
import { ResponseReader } from "./response.ts";

export interface ForwardEnd {
  readonly kind: "answered" | "left" | "lost";
  readonly status: number;
  /** Why it was lost. */
  readonly error?: Error;
}

/** A short call that is let in: what its sandbox is sent, over which lines, and who is told how it ended; one of the two. */
export interface Forward {
  readonly lines: SandboxConnections;
  readonly head: string;
  /** Put before the id of an MCP session that the answer names. */
  readonly sessionTag: string | undefined;
  onEnd(end: ForwardEnd): void;
  /** What the client is told, whole, when the sandbox does not answer. */
  onLost(error: Error): Promise<Buffer>;
}

/** Lets a call in, answers it at once, or says null: then it takes the regular path. */
export type Dispatch = (request: ShortRequest, socket: Socket) => Dispatched | Promise<Dispatched>;
export type Dispatched = Forward | Buffer | null;

export interface ConnectionOptions {
  readonly dispatch: Dispatch;
  readonly handOver: (pending: Buffer | null) => void;
  readonly onOver: () => void;
}

/** A client that sends its next requests while it waits for an answer is slowed down here. */
const MAX_AHEAD_BYTES = 64 * 1024;
/** What a client is told so that it does not send on a connection that we are about to close. */
export const KEEP_ALIVE = `keep-alive\r\nkeep-alive: timeout=${KEEP_ALIVE_MS / 1_000}`;

/** One client's connection, for as long as it sends nothing but short calls. */
export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  #pending: Buffer | null = null;
  #isBusy = false;
  #isEnding = false;
  #hasBegun = false;
  #heardAt = performance.now();
  #abandon: (() => void) | null = null;

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

  /** After the call in flight, if there is one. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isBusy) this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  endIfSilent(firstWordMs: number, nextWordMs: number): void {
    const limitMs = this.#hasBegun && this.#pending === null ? nextWordMs : firstWordMs;
    if (this.#isBusy || performance.now() - this.#heardAt < limitMs) return;
    // Within a request Node's patience counts.
    if (this.#pending === null) this.destroy();
    else this.#handOver();
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#heardAt = performance.now();
    this.#pending = this.#pending === null ? bytes : Buffer.concat([this.#pending, bytes]);
    if (!this.#isBusy) this.#next(this.#pending);
    else if (this.#pending.length > MAX_AHEAD_BYTES) this.#socket.pause();
  };

  readonly #onEnd = (): void => {
    this.#abandon?.();
    this.#socket.end();
  };

  readonly #onClose = (): void => {
    this.#abandon?.();
    this.#options.onOver();
  };

  #next(pending: Buffer): void {
    const request = readShortRequest(pending);
    // Some clients send head and body apart.
    if (request === "unfinished") return;
    if (typeof request === "string") {
      this.#handOver();
      return;
    }
    this.#isBusy = true;
    this.#hasBegun = true;
    const dispatched = this.#options.dispatch(request, this.#socket);
    if (dispatched instanceof Promise) void dispatched.then((passage) => this.#carry(request, passage));
    else this.#carry(request, dispatched);
  }

  #carry(request: ShortRequest, passage: Dispatched): void {
    const isGone = this.#socket.destroyed || this.#socket.readableEnded;
    if (passage === null) {
      if (!isGone) this.#handOver();
      return;
    }
    const pending = this.#pending as Buffer;
    this.#pending = pending.length > request.end ? pending.subarray(request.end) : null;
    if (Buffer.isBuffer(passage)) {
      this.#say(passage);
      return;
    }
    if (isGone) {
      passage.onEnd({ kind: "left", status: 0 });
      return;
    }
    const line = passage.lines.acquire();
    this.#listen(line, passage);
    line.socket.write(joined(passage.head, pending.subarray(request.bodyAt, request.end)));
  }

  #listen(line: SandboxConnection, passage: Forward): void {
    const reader = new ResponseReader(passage.sessionTag);
    const socket = this.#socket;
    const hangUp = () => {
      this.#abandon = null;
      passage.lines.release(line, reader.sandboxKeepsMs);
    };
    const finish = (kind: ForwardEnd["kind"], error?: Error) => {
      hangUp();
      passage.onEnd({ kind, status: reader.status, ...(error !== undefined && { error }) });
    };
    const lose = (error: Error) => {
      if (reader.status === 0) {
        hangUp();
        void this.#refuse(passage, error);
      } else {
        finish("lost", error);
        socket.destroy();
      }
    };
    this.#abandon = () => finish("left");
    line.onData = (bytes) => {
      let told: Buffer;
      try {
        told = reader.read(bytes, this.#isEnding ? "close" : KEEP_ALIVE);
      } catch (error) {
        return lose(error as Error);
      }
      if (told.length > 0 && !socket.write(told) && !reader.isOver) {
        line.socket.pause();
        socket.once("drain", () => line.socket.resume());
      }
      if (!reader.isOver) return;
      finish("answered");
      this.#rest();
    };
    line.onClose = (error) => {
      if (!reader.hangUp()) return lose(error);
      finish("answered");
      socket.end();
    };
  }

  /** Ready for the next call. */
  #rest(): void {
    this.#isBusy = false;
    this.#heardAt = performance.now();
    if (this.#socket.destroyed) return;
    if (this.#isEnding) {
      this.#socket.end();
      return;
    }
    if (this.#socket.isPaused()) this.#socket.resume();
    if (this.#pending !== null) this.#next(this.#pending);
  }

  async #refuse(passage: Forward, error: Error): Promise<void> {
    this.#say(await passage.onLost(error));
  }

  #say(answer: Buffer): void {
    if (!this.#socket.destroyed) this.#socket.write(answer);
    this.#rest();
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
  // That a connection breaks is told by its close.
}

function joined(head: string, body: Buffer): Buffer {
  const whole = Buffer.allocUnsafe(head.length + body.length);
  whole.write(head, 0, "latin1");
  whole.set(body, head.length);
  return whole;
}
