import { parseRetryAfter } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { StatusError, TransportError } from "./http-errors.ts";

/**
 * How often a request may arrive:
 * `idempotent` as often as it likes; `keyed` too, since the server knows it again by its key, but an answer that
 * may come from a half-done job is taken as final; `once` never twice, so it is repeated only if it never left.
 */
export type RetryRule = "idempotent" | "keyed" | "once";

export interface RetryOptions {
  readonly rule: RetryRule;
  readonly maxRetries: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** A moment of the clock after which no further attempt begins. */
  readonly deadlineAt?: number | undefined;
  /** How long an address at which nothing listens is attempts; as long as any other failure if absent. */
  readonly refusedLimitMs?: number | undefined;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** A server that asks for more patience than this is taken at its word: the answer is final. */
const LONGEST_RETRY_AFTER_MS = 60_000;

const STATUSES: Readonly<Record<RetryRule, readonly number[]>> = {
  idempotent: [429, 502, 503, 504],
  keyed: [429, 503],
  once: [],
};

/** Tries until it succeeds, may not be repeated, or the budget of attempts and time is used up; then the last error stands. */
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

/** Between half and the whole of a doubling, capped time, or what the server asks for; null if it asks for too much. */
export function waitBefore(attempts: number, error: unknown, clock: Pick<Clock, "random">): number | null {
  const requestedMs = error instanceof StatusError ? parseRetryAfter(error.retryAfter, Date.now()) : null;
  if (requestedMs !== null) return requestedMs <= LONGEST_RETRY_AFTER_MS ? requestedMs : null;
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts);
  return whole / 2 + (clock.random() * whole) / 2;
}
