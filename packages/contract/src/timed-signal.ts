import { clampDelayMs } from "./bounded-read.ts";

/**
 * A signal that aborts after a time, or with another signal, and for its reason. Dispose it when the work is done.
 *
 * Node keeps the signal of `AbortSignal.any([signal, AbortSignal.timeout(ms)])` in memory until the time is over, however early the work
 * was done: with many short requests that have a long timeout, that is a leak. This one also costs less.
 *
 * @example
 * using limit = new TimedSignal(10_000, signal);
 * await fetch(url, { signal: limit.signal });
 */
export class TimedSignal implements Disposable {
  readonly #controller = new AbortController();
  readonly #other: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #onAbort = () => this.#controller.abort(this.#other?.reason);
  #isOver = false;

  /** The reason after the time is that of `AbortSignal.timeout`, unless another is given. */
  constructor(ms: number, other?: AbortSignal, reasonOf: () => unknown = timedOut) {
    this.#other = other;
    const expire = () => {
      this.#isOver = !this.signal.aborted;
      this.#controller.abort(reasonOf());
    };
    this.#timer = setTimeout(expire, clampDelayMs(ms, Number.POSITIVE_INFINITY));
    if (other?.aborted) this.#onAbort();
    else other?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the time ended it; false if the other signal did. */
  get isOver(): boolean {
    return this.#isOver;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#other?.removeEventListener("abort", this.#onAbort);
  }
}

function timedOut(): DOMException {
  return new DOMException("the operation took too long", "TimeoutError");
}
