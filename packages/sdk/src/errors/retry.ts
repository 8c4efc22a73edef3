import { parseRetryAfter } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { StatusError, TransportError } from "./http-errors.ts";

/**
 * Whether a request may be repeated:
 * `idempotent`: any number of times. `keyed`: too, since the server recognises it by its idempotency key, but a 502 or 504, which
 * may come after half of the work, is final. `once`: only if it was certainly not sent.
 */
export type RetryRule = "idempotent" | "keyed" | "once";

export interface RetryOptions {
  readonly rule: RetryRule;
  readonly maxRetries: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Time of the clock after which no further attempt starts. */
  readonly deadlineAt?: number | undefined;
  /** How long refused connections are retried; as long as any other failure if absent. */
  readonly refusedLimitMs?: number | undefined;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** With a longer `Retry-After` the response is final. */
const LONGEST_RETRY_AFTER_MS = 60_000;

const STATUSES: Readonly<Record<RetryRule, readonly number[]>> = {
  idempotent: [429, 502, 503, 504],
  keyed: [429, 503],
  once: [],
};

/** Retries until success, an error that must not be repeated, or the limit of attempts or time; then throws the last error. */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { deadlineAt = Number.POSITIVE_INFINITY, refusedLimitMs = Number.POSITIVE_INFINITY } = options;
  const refusedUntil = options.clock.now() + refusedLimitMs;
  for (let attempts = 0; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (attempts >= options.maxRetries || options.signal?.aborted || !mayRepeat(options.rule, error)) throw error;
      const waitMs = waitBefore(attempts, error, options.clock);
      const end = error instanceof TransportError && error.isRefused ? Math.min(deadlineAt, refusedUntil) : deadlineAt;
      if (waitMs === null || options.clock.now() + waitMs > end) throw error;
      await options.clock.sleep(waitMs, options.signal);
    }
  }
}

export function mayRepeat(rule: RetryRule, error: unknown): boolean {
  if (error instanceof StatusError) return STATUSES[rule].includes(error.status);
  if (error instanceof TransportError) return rule !== "once" || !error.wasSent;
  return false;
}

/** Exponential backoff with jitter and a cap, or the server's `Retry-After`; null if that is too long. */
export function waitBefore(attempts: number, error: unknown, clock: Pick<Clock, "random">): number | null {
  const requestedMs = error instanceof StatusError ? parseRetryAfter(error.retryAfter, Date.now()) : null;
  if (requestedMs !== null) return requestedMs <= LONGEST_RETRY_AFTER_MS ? requestedMs : null;
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts);
  return whole / 2 + (clock.random() * whole) / 2;
}
