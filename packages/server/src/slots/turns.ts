/** Whether somebody waits for the work now, or it is done ahead of need. */
export type Urgency = "now" | "ahead";

/**
 * Lets so many work at once, as more would only make everyone slower. What is needed now goes first; of what is done ahead of
 * need there is one at a time, so that it never stands in the way for long.
 */
export class Turns {
  readonly #atOnce: number;
  readonly #working = { now: 0, ahead: 0 };
  readonly #waiting: Record<Urgency, Waiting[]> = { now: [], ahead: [] };

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  async run<T>(urgency: Urgency, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#turn(urgency, signal);
    try {
      return await work();
    } finally {
      this.#working[urgency]--;
      this.#next();
    }
  }

  #turn(urgency: Urgency, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise<void>((resolve, reject) => {
      const line = this.#waiting[urgency];
      const leave = () => {
        line.splice(line.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      line.push(waiting);
      this.#next();
    });
  }

  #next(): void {
    while (this.#working.now + this.#working.ahead < this.#atOnce) {
      const urgency = this.#whoseTurn();
      if (urgency === null) return;
      this.#working[urgency]++;
      this.#waiting[urgency].shift()?.start();
    }
  }

  #whoseTurn(): Urgency | null {
    if (this.#waiting.now.length > 0) return "now";
    return this.#waiting.ahead.length > 0 && this.#working.ahead === 0 ? "ahead" : null;
  }
}

interface Waiting {
  readonly start: () => void;
}
