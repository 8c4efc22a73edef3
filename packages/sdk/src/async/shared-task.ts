import { untilAborted } from "@aenv/contract";

/** One task with many waiters. It is aborted when the last waiter aborts. */
export class SharedTask<T> {
  readonly #controller = new AbortController();
  readonly #promise: Promise<T>;
  #waiting = 0;
  #isSettled = false;

  constructor(run: (signal: AbortSignal) => Promise<T>) {
    // Started asynchronously, so that the creator can store the task before it settles.
    this.#promise = Promise.resolve()
      .then(() => run(this.#controller.signal))
      .finally(() => {
        this.#isSettled = true;
      });
    // Waiters get the rejection from `join`; without any waiter it is not an unhandled rejection.
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

  /** Resolves when the task has settled, also when it failed. */
  async settled(): Promise<void> {
    await this.#promise.catch(() => {});
  }
}
