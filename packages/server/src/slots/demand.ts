const HALF_LIFE_MS = 10_000;

/** Rate of recent claims, with exponential decay. */
export class Demand {
  #weight = 0;
  #at = 0;

  note(now: number): void {
    this.#weight = this.#decayed(now) + 1;
    this.#at = now;
  }

  /** Claims per second, averaged over about the last half-minute. */
  perSecond(now: number): number {
    return (this.#decayed(now) * Math.LN2 * 1_000) / HALF_LIFE_MS;
  }

  #decayed(now: number): number {
    return this.#weight * 0.5 ** ((now - this.#at) / HALF_LIFE_MS);
  }
}

/** Upper estimate of the time to replace a claimed process. */
const REFILL_SECONDS = 0.5;

/** Expected claims while one process is being replaced. */
export function expectedClaims(perSecond: number): number {
  const expected = perSecond * REFILL_SECONDS;
  // A single claim minutes ago is no demand.
  return expected < 0.001 ? 0 : Math.ceil(expected);
}
