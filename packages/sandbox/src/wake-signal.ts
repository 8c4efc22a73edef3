/** Wakes one waiter, also if it was rung before anyone waited; rings in a row count once. */
export class Bell {
  #isRung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    if (this.#wake === null) this.#isRung = true;
    else this.#wake();
  }

  /** Until the next ring, or the time is over. */
  wait(limitMs?: number): Promise<void> {
    if (this.#isRung) {
      this.#isRung = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = limitMs === undefined ? undefined : setTimeout(() => this.#wake?.(), limitMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
    });
  }
}
