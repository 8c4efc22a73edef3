import { Duplex, Readable, Writable } from "node:stream";
import type { InitStream, Receiver } from "./stream.ts";

type Done = (error?: Error | null) => void;

/** Data from the init as a Node stream. The init may send more when the reader has taken what is there. */
export class IncomingBytes extends Readable implements Receiver {
  readonly #stream: InitStream;
  readonly #resetOnDestroy: boolean;
  #held = 0;

  /** Without `resetOnDestroy`, destroying it drops the rest of the data but lets the request go on. */
  constructor(stream: InitStream, resetOnDestroy: boolean) {
    super({ highWaterMark: 64 << 10 });
    this.#stream = stream;
    this.#resetOnDestroy = resetOnDestroy;
    // An error is also reported by the request's promises; without a listener it would end this process.
    this.on("error", () => undefined);
  }

  /** `size` counts what the init has sent for this data. */
  receive(data: Buffer, size: number = data.length): void {
    if (this.destroyed || this.push(data)) this.#stream.release(size);
    else this.#held += size;
  }

  finish(): void {
    this.push(null);
  }

  fail(error: Error): void {
    this.destroy(error);
  }

  override _read(): void {
    this.#releaseHeld();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#releaseHeld();
    if (this.#resetOnDestroy) this.#stream.reset(error ?? new Error("the reader closed the stream"));
    done(error);
  }

  #releaseHeld(): void {
    const held = this.#held;
    this.#held = 0;
    if (held > 0) this.#stream.release(held);
  }
}

/** Data to the init as a Node stream. Ending it ends the input; destroying it leaves the request alone. */
export class OutgoingBytes extends Writable {
  readonly #stream: InitStream;

  constructor(stream: InitStream) {
    super({ highWaterMark: 64 << 10 });
    this.#stream = stream;
    // Fails when the process ends first, which its exit reports.
    this.on("error", () => undefined);
  }

  override _write(data: Buffer, _encoding: string, done: Done): void {
    this.#stream.write(data, done);
  }

  override _final(done: Done): void {
    this.#stream.end();
    done();
  }
}

/** Both directions as one Node stream: a connection to a port of the sandbox. */
export class StreamDuplex extends Duplex implements Receiver {
  readonly #stream: InitStream;
  #held = 0;

  constructor(stream: InitStream) {
    super({ allowHalfOpen: false });
    this.#stream = stream;
    // A port that is closed is reported by the answer; without a listener it would also end this process.
    this.on("error", () => undefined);
  }

  receive(data: Buffer): void {
    if (this.push(data)) this.#stream.release(data.length);
    else this.#held += data.length;
  }

  finish(): void {
    this.push(null);
  }

  fail(error: Error): void {
    this.destroy(error);
  }

  override _read(): void {
    const held = this.#held;
    this.#held = 0;
    if (held > 0) this.#stream.release(held);
  }

  override _write(data: Buffer, _encoding: string, done: Done): void {
    this.#stream.write(data, done);
  }

  override _final(done: Done): void {
    this.#stream.end();
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#stream.reset(error ?? new Error("the connection was closed"));
    done(error);
  }
}
