/** Wakes one waiter. A notification without a waiter is kept for the next one; several count as one. */
export class WakeSignal {
  #isNotified = false;
  #wake: (() => void) | null = null;

  notify(): void {
    if (this.#wake === null) this.#isNotified = true;
    else this.#wake();
  }

  /** Resolves at the next notification, or when the time limit is over. */
  wait(limitMs?: number): Promise<void> {
    if (this.#isNotified) {
      this.#isNotified = false;
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
