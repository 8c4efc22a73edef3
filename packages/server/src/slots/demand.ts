const HALF_LIFE_MS = 10_000;

/** How often something has been asked for lately; what is long ago counts for little. */
export class Demand {
  #weight = 0;
  #at = 0;

  note(now: number): void {
    this.#weight = this.#decayed(now) + 1;
    this.#at = now;
  }

  /** Asks a second, averaged over the last half-minute or so. */
  perSecond(now: number): number {
    return (this.#decayed(now) * Math.LN2 * 1_000) / HALF_LIFE_MS;
  }

  #decayed(now: number): number {
    return this.#weight * 0.5 ** ((now - this.#at) / HALF_LIFE_MS);
  }
}

/** How long it takes until a process that was taken is replaced, generously. */
const REFILL_SECONDS = 0.5;

/** How many are likely to be asked for while one is being replaced. */
export function demandedSize(perSecond: number): number {
  const wanted = perSecond * REFILL_SECONDS;
  // What was asked for once, minutes ago, is no demand any more.
  return wanted < 0.001 ? 0 : Math.ceil(wanted);
}
