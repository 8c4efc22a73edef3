/** How many episodes may run at the same time. */
export interface ConcurrencyOptions {
  readonly max: number;
  /** Where it begins; the maximum unless given. */
  readonly first?: number;
}

/**
 * Runs as many episodes at once as the model's endpoint and the server can take: half as many after each sign that one of them is busy,
 * and one more after each round of episodes without such a sign.
 */
export class Concurrency {
  readonly #max: number;
  #limit: number;
  #running = 0;
  #endedSinceChange = 0;
  #busyUntil = Number.NEGATIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];

  constructor({ max, first = max }: ConcurrencyOptions) {
    this.#max = max;
    this.#limit = Math.max(1, Math.min(first, max));
  }

  get limit(): number {
    return this.#limit;
  }

  get running(): number {
    return this.#running;
  }

  /** Resolves when one more may run; the caller says `end` when it has ended. */
  async begin(): Promise<void> {
    while (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
  }

  end(): void {
    this.#running--;
    this.#endedSinceChange++;
    if (this.#limit < this.#max && this.#endedSinceChange >= this.#limit) this.#change(this.#limit + 1);
    this.#wake();
  }

  /**
   * Plays the episodes of a plan until `play` fails or `cancel` aborts, and waits for those that have begun. Only what runs
   * now is held, however long the plan is.
   */
  async forEach<T>(plan: AsyncIterable<T>, cancel: AbortSignal, play: (one: T) => Promise<void>): Promise<void> {
    const running = new Set<Promise<void>>();
    const failures: unknown[] = [];
    try {
      for await (const planned of plan) {
        await this.begin();
        if (cancel.aborted || failures.length > 0) {
          this.end();
          break;
        }
        const one = play(planned)
          .catch((error: unknown) => void failures.push(error))
          .finally(() => {
            running.delete(one);
            this.end();
          });
        running.add(one);
      }
    } finally {
      // Also if the plan cannot be read any further: what is played has instances, and its trajectory is written.
      await Promise.all(running);
    }
    if (failures.length > 0) throw failures[0];
  }

  /** The endpoint or the server asks for a pause. Further signs until its end are of the same moment and count once. */
  readonly noteBusy = (pauseMs: number, now = performance.now()): void => {
    if (now < this.#busyUntil) return;
    this.#busyUntil = now + Math.max(pauseMs, 1_000);
    this.#change(Math.max(1, Math.floor(this.#limit / 2)));
  };

  #change(limit: number): void {
    this.#limit = limit;
    this.#endedSinceChange = 0;
  }

  #wake(): void {
    for (let free = this.#limit - this.#running; free > 0; free--) this.#waiting.shift()?.();
  }
}
