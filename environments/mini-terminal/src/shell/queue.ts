/** Runs tasks one after the other, in the order in which they came. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  /** A task whose signal fires while it waits is not run. */
  add<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const result = this.#last.then(() => {
      signal.throwIfAborted();
      return work();
    });
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves when all tasks that were added have ended. */
  async done(): Promise<void> {
    await this.#last;
  }
}
