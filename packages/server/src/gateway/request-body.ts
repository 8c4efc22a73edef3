import type { IncomingMessage } from "node:http";

// When a sandbox does not read, reading from its client is paused too. But a paused connection does not report that the client has
// closed it: the end comes after the unread bytes. So after a while the gateway reads ahead, to detect a client that has
// disconnected. A request too large for that is aborted when its sandbox has read nothing for a long time.

/** How much of a request is buffered while its sandbox does not read. */
const USUAL_BYTES = 64 * 1024;
/** The most that is read ahead for one request. */
const LOOK_AHEAD_BYTES = 16 * 1024 * 1024;

export interface StallLimits {
  /** Reading ahead begins after this long without progress. */
  readonly lookAfterMs: number;
  /** If the end of the request was not reached, it is aborted after this long without progress. */
  readonly giveUpAfterMs: number;
}

export const stallLimits: StallLimits = { lookAfterMs: 1_000, giveUpAfterMs: 60_000 };

/** The memory that all requests share for reading ahead. */
export class LookAhead {
  #left: number;

  constructor(bytes = 64 * 1024 * 1024) {
    this.#left = bytes;
  }

  get left(): number {
    return this.#left;
  }

  take(): number {
    const taken = Math.min(this.#left, LOOK_AHEAD_BYTES);
    this.#left -= taken;
    return taken;
  }

  give(bytes: number): void {
    this.#left += bytes;
  }
}

/** A request's body as a stream. Ending the iteration leaves the request open, so that the client can get a response. */
export class RequestBody implements AsyncIterable<Buffer> {
  readonly #request: IncomingMessage;
  readonly #lookAhead: LookAhead;
  readonly #limits: StallLimits;
  readonly #onStalled: () => void;
  readonly #queue: Buffer[] = [];
  #queued = 0;
  #granted = 0;
  #isOver = false;
  #failure: Error | null = null;
  #wake: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;

  constructor(request: IncomingMessage, lookAhead: LookAhead, limits: StallLimits, onStalled: () => void) {
    this.#request = request;
    this.#lookAhead = lookAhead;
    this.#limits = limits;
    this.#onStalled = onStalled;
    request.on("data", this.#onData).on("end", this.#onEnd).on("error", this.#onError).on("close", this.#onClose);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const piece = this.#queue.shift();
        if (piece !== undefined) {
          this.#queued -= piece.length;
          this.#onTaken();
          yield piece;
        } else if (this.#failure !== null) throw this.#failure;
        else if (this.#isOver) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.stop();
    }
  }

  /** The rest of the body is not needed. */
  stop(): void {
    this.#isOver = true;
    this.#queue.length = 0;
    this.#queued = 0;
    this.#giveBack();
    this.#request.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    this.#wake();
  }

  readonly #onData = (piece: Buffer): void => {
    this.#queue.push(piece);
    this.#queued += piece.length;
    this.#wake();
    if (this.#queued < USUAL_BYTES + this.#granted) return;
    this.#request.pause();
    if (this.#granted > 0) this.#giveUpLater();
    else this.#timer ??= setTimeout(() => this.#look(), this.#limits.lookAfterMs);
  };

  readonly #onEnd = (): void => {
    this.#isOver = true;
    this.#wake();
  };

  readonly #onError = (error: Error): void => {
    this.#failure = error;
    this.#wake();
  };

  readonly #onClose = (): void => {
    if (!this.#isOver) this.#failure ??= new Error("the client disconnected within its request");
    this.#wake();
  };

  #onTaken(): void {
    this.#giveBack();
    if (this.#queued < USUAL_BYTES && this.#request.isPaused()) this.#request.resume();
  }

  /** Reads ahead although the sandbox does not read. */
  #look(): void {
    this.#timer = undefined;
    this.#granted = this.#lookAhead.take();
    if (this.#granted > 0) this.#request.resume();
    else this.#giveUpLater();
  }

  #giveUpLater(): void {
    this.#timer ??= setTimeout(this.#onStalled, this.#limits.giveUpAfterMs);
  }

  #giveBack(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lookAhead.give(this.#granted);
    this.#granted = 0;
  }
}
