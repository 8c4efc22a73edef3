const HALF_LIFE_MS = 20_000;

/** How often pods of a kind were needed of late, by any server. */
export class PodDemand {
  #weight = 0;
  #at = 0;
  usedAt: number;

  constructor(now: number) {
    this.usedAt = now;
  }

  note(now: number): void {
    this.#weight = this.#decayed(now) + 1;
    this.#at = now;
    this.usedAt = now;
  }

  /** Averaged over about the last minute. */
  perSecond(now: number): number {
    return (this.#decayed(now) * Math.LN2 * 1_000) / HALF_LIFE_MS;
  }

  #decayed(now: number): number {
    return this.#weight * 0.5 ** ((now - this.#at) / HALF_LIFE_MS);
  }
}
