/** How many episodes may run at the same time. */
export interface ConcurrencyOptions {
  readonly max: number;
  /** Where it begins; the maximum unless given. */
  readonly first?: number;
}

/**
 * Lets as many episodes run at once as the model's endpoint and the server can take: half as many after each sign that one of them is
 * busy, and one more after each round of episodes without such a sign.
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

  /** One of the two is busy until then; signs that come before are of the same moment and count once. */
  noteBusy(now: number, pauseMs: number): void {
    if (now < this.#busyUntil) return;
    this.#busyUntil = now + Math.max(pauseMs, 1_000);
    this.#change(Math.max(1, Math.floor(this.#limit / 2)));
  }

  #change(limit: number): void {
    this.#limit = limit;
    this.#endedSinceChange = 0;
  }

  #wake(): void {
    for (let free = this.#limit - this.#running; free > 0; free--) this.#waiting.shift()?.();
  }
}
