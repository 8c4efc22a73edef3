import type { Clock } from "../async/clock.ts";

/** Failures in a row after which an instance is left alone for a while. */
const OPEN_AFTER = 5;
const COOL_DOWN_MS = 30_000;

/**
 * Stops calling an instance that keeps failing. After a pause one call may try (half-open):
 * its success closes the breaker, its failure opens it for another pause.
 */
export class CircuitBreaker {
  readonly #clock: Pick<Clock, "now">;
  #failures = 0;
  #openUntil = 0;
  #isProbing = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to wait before a call may go; 0 lets it go, and if open, makes it the one that tries. */
  enter(): number {
    if (this.#failures < OPEN_AFTER) return 0;
    const left = this.#openUntil - this.#clock.now();
    if (left > 0) return left;
    if (this.#isProbing) return COOL_DOWN_MS;
    this.#isProbing = true;
    return 0;
  }

  succeed(): void {
    this.reset();
  }

  fail(): void {
    this.#isProbing = false;
    this.#failures++;
    if (this.#failures >= OPEN_AFTER) this.#openUntil = this.#clock.now() + COOL_DOWN_MS;
  }

  /** The caller gave up: that says nothing about the instance, and the next call may try. */
  cancel(): void {
    this.#isProbing = false;
  }

  reset(): void {
    this.#failures = 0;
    this.#openUntil = 0;
    this.#isProbing = false;
  }
}
