/** Admits so many at once, and so many per second after that. */
export class TokenBucket {
  readonly #size: number;
  readonly #perSecond: number;
  #tokens: number;
  #at: number;

  constructor({ size, perSecond, now }: { readonly size: number; readonly perSecond: number; readonly now: number }) {
    this.#size = size;
    this.#perSecond = perSecond;
    this.#tokens = size;
    this.#at = now;
  }

  take(now: number): boolean {
    this.#tokens = Math.min(this.#size, this.#tokens + ((now - this.#at) / 1_000) * this.#perSecond);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
