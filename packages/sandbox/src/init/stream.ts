import { PlatformError } from "@aenv/contract";
import { InitError } from "./error.ts";
import { type Frame, frameKind, initialWindow, maxDataBytes } from "./frame.ts";
import { fieldsOf, parseFields, textIn } from "./json.ts";

/** Takes the data of a stream; it must call `release` for what it has taken. */
export interface Receiver {
  receive(data: Buffer): void;
  finish(): void;
  fail(error: Error): void;
}

export interface InitStreamOptions {
  readonly id: number;
  readonly send: (kind: number, payload: Uint8Array) => void;
  readonly isCongested: () => boolean;
  readonly onClose: () => void;
}

interface WaitingWrite {
  readonly data: Uint8Array;
  readonly done: (error?: Error | null) => void;
}

const nothing = Buffer.alloc(0);

/** One request to the init: its answer, and data in both directions. Each side sends only as much as the other has allowed. */
export class InitStream {
  readonly id: number;
  readonly #send: (kind: number, payload: Uint8Array) => void;
  readonly #isCongested: () => boolean;
  readonly #onClose: () => void;
  readonly #answer = Promise.withResolvers<unknown>();
  readonly #summary = Promise.withResolvers<unknown>();
  #receiver: Receiver | undefined;
  #isClosed = false;
  #hasAnswer = false;
  #credit = initialWindow;
  /** What the init may still send. */
  #window = initialWindow;
  #released = 0;
  #writes: WaitingWrite[] = [];
  #failure: Error | undefined;

  /** `isCongested`: the init does not read what was sent, and `flush` is called when it does. */
  constructor({ id, send, isCongested, onClose }: InitStreamOptions) {
    this.id = id;
    this.#send = send;
    this.#isCongested = isCongested;
    this.#onClose = onClose;
    // Both may fail with nobody waiting for them.
    this.#answer.promise.catch(() => undefined);
    this.#summary.promise.catch(() => undefined);
  }

  /** What the init answered. */
  get answer(): Promise<unknown> {
    return this.#answer.promise;
  }

  /** What the init said at the end of its data. */
  get summary(): Promise<unknown> {
    return this.#summary.promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Must be called before the request is sent: data may follow the answer at once. Without it, the answer ends the stream. */
  receiveWith(receiver: Receiver): void {
    this.#receiver = receiver;
  }

  request(name: string, parameters: object): void {
    this.#send(frameKind.request, Buffer.from(JSON.stringify({ request: name, parameters })));
  }

  accept(frame: Frame): void {
    switch (frame.kind) {
      case frameKind.answer: {
        const { result, error } = parseFields(frame.payload);
        if (error !== undefined) {
          this.fail(errorOf(error));
          return;
        }
        this.#hasAnswer = true;
        this.#answer.resolve(result);
        if (this.#receiver === undefined) this.#close(new InitError("ended", "the request has been answered"));
        return;
      }
      case frameKind.data:
        // A program of the sandbox may have taken the init over. All that it sends beyond the window would be kept until it is read.
        if (frame.payload.length > this.#window)
          throw new PlatformError("sandbox.lost", `the sandbox's init sent more data than the ${this.#window} bytes that were allowed`);
        this.#window -= frame.payload.length;
        this.#receiver?.receive(frame.payload);
        return;
      case frameKind.end:
        this.#summary.resolve(parseFields(frame.payload));
        this.#close(new InitError("ended", "the stream has ended"));
        this.#receiver?.finish();
        return;
      case frameKind.window:
        this.#credit += frame.payload.readUInt32BE(0);
        this.flush();
        return;
      case frameKind.reset:
        this.fail(errorOf(parseFields(frame.payload)));
        return;
    }
  }

  /** Sends data as soon as the init allows it. */
  write(data: Uint8Array, done: (error?: Error | null) => void): void {
    if (this.#isClosed) {
      done(this.#failure);
      return;
    }
    this.#writes.push({ data, done });
    this.flush();
  }

  /** Tells the init that no more data follows. */
  end(): void {
    if (!this.#isClosed) this.#send(frameKind.end, nothing);
  }

  /** Allows the init to send more, after the receiver has taken this much. */
  release(bytes: number): void {
    this.#released += bytes;
    // In large steps, so that few frames are sent.
    if (this.#isClosed || this.#released < initialWindow / 4) return;
    const credits = Buffer.alloc(4);
    credits.writeUInt32BE(this.#released);
    this.#window += this.#released;
    this.#released = 0;
    this.#send(frameKind.window, credits);
  }

  /** Gives the request up. */
  reset(reason: Error): void {
    if (this.#isClosed) return;
    this.#send(frameKind.reset, Buffer.from(JSON.stringify({ code: "cancelled", message: reason.message })));
    this.fail(reason);
  }

  fail(error: Error): void {
    if (this.#isClosed) return;
    this.#close(error);
    if (!this.#hasAnswer) this.#answer.reject(error);
    this.#summary.reject(error);
    this.#receiver?.fail(error);
  }

  #close(reason: Error): void {
    this.#isClosed = true;
    this.#failure = reason;
    this.#onClose();
    for (const { done } of this.#writes.splice(0)) done(reason);
  }

  /** Sends what waits, as far as the init allows it and reads. */
  flush(): void {
    // An init may allow any amount and read nothing, and what is sent to it would be kept here.
    while (this.#credit > 0 && !this.#isCongested()) {
      const next = this.#writes.shift();
      if (next === undefined) return;
      const size = Math.min(this.#credit, maxDataBytes, next.data.length);
      if (size > 0) this.#send(frameKind.data, next.data.subarray(0, size));
      this.#credit -= size;
      if (size === next.data.length) next.done();
      else this.#writes.unshift({ data: next.data.subarray(size), done: next.done });
    }
  }
}

function errorOf(value: unknown): Error {
  const fields = fieldsOf(value);
  return new InitError(textIn(fields, "code"), textIn(fields, "message"));
}
