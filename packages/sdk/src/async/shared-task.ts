import { untilAborted } from "./until-aborted.ts";

/** One piece of work that many wait for. It is given up when the last who waits gives up. */
export class SharedTask<T> {
  readonly #controller = new AbortController();
  readonly #promise: Promise<T>;
  #waiting = 0;
  #isSettled = false;

  constructor(run: (signal: AbortSignal) => Promise<T>) {
    // Begun a moment later, so that whoever starts it can keep it before it is done.
    this.#promise = Promise.resolve()
      .then(() => run(this.#controller.signal))
      .finally(() => {
        this.#isSettled = true;
      });
    // Those who wait hear of a failure; when nobody does, it is nobody's.
    this.#promise.catch(() => {});
  }

  async join(signal?: AbortSignal): Promise<T> {
    this.#waiting++;
    try {
      return await untilAborted(this.#promise, signal);
    } finally {
      this.#waiting--;
      if (this.#waiting === 0 && !this.#isSettled) this.abort(signal?.reason);
    }
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Resolves when the work has ended, well or not. */
  async settled(): Promise<void> {
    await this.#promise.catch(() => {});
  }
}
