/** How often something was needed recently: a rate with exponential decay. */
export class Demand {
  readonly #halfLifeMs: number;
  #weight = 0;
  #usedAt: number;

  constructor(now: number, halfLifeMs: number) {
    this.#usedAt = now;
    this.#halfLifeMs = halfLifeMs;
  }

  /** When it was needed last; until then, when it became known. */
  get usedAt(): number {
    return this.#usedAt;
  }

  note(now: number): void {
    this.#weight = this.#decayed(now) + 1;
    this.#usedAt = now;
  }

  /** Averaged over about three half-lives. */
  perSecond(now: number): number {
    return (this.#decayed(now) * Math.LN2 * 1_000) / this.#halfLifeMs;
  }

  /** How many are needed while one is replaced, rounded up if the fraction is more than `ignored`. */
  expected(now: number, replaceMs: number, ignored: number): number {
    return Math.max(0, Math.ceil((this.perSecond(now) * replaceMs) / 1_000 - ignored));
  }

  isIdle(now: number, idleMs: number): boolean {
    return now - this.#usedAt >= idleMs;
  }

  #decayed(now: number): number {
    return this.#weight * 0.5 ** ((now - this.#usedAt) / this.#halfLifeMs);
  }
}
