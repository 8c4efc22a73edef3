import type { Clock } from "../async/clock.ts";

/** Consecutive failures that open the breaker. */
const OPEN_AFTER = 5;
const COOL_DOWN_MS = 30_000;

/**
 * Rejects calls to an instance that keeps failing. After a pause one call is let through (half-open):
 * success closes the breaker, failure opens it for another pause.
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

  /** Milliseconds until a call is allowed. 0 allows it; if the breaker is open, this call becomes the probe. */
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

  /** The caller aborted: this is no information about the instance, and the next call may be the probe. */
  cancel(): void {
    this.#isProbing = false;
  }

  reset(): void {
    this.#failures = 0;
    this.#openUntil = 0;
    this.#isProbing = false;
  }
}
