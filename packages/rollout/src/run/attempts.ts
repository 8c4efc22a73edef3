import type { Trajectory, UnscoredCause } from "@aenv/contract";
import { type Spent, withEarlierAttempts } from "../stats/earlier-attempts.ts";

/** How often an episode is played again. */
export interface RetryPolicy {
  /** Further attempts after an outcome that is unscored and retryable. */
  readonly retries: number;
  /** Other numbers for some causes. */
  readonly retriesOf?: Readonly<Partial<Record<UnscoredCause, number>>>;
  /** True for attempts that use nothing of their own: then nothing is added up. */
  readonly areAttemptsFree?: boolean;
  readonly cancel: AbortSignal;
}

/**
 * Plays an episode until it is scored, or must not be retried. The last attempt is returned, with what those before it used. Null if
 * `play` gives null: the episode is no longer the caller's.
 */
export async function playAttempts<T extends Trajectory | null>(
  { retries, retriesOf = {}, areAttemptsFree = false, cancel }: RetryPolicy,
  play: (attempt: number) => Promise<T>,
  first = 0,
): Promise<T> {
  const earlier: Spent[] = [];
  for (let attempt = first; ; attempt++) {
    const last = await play(attempt);
    if (last === null) return last;
    const { outcome, usage, cost } = last;
    const isLast = outcome.kind === "scored" || !outcome.retryable || attempt >= (retriesOf[outcome.cause] ?? retries);
    if (isLast || cancel.aborted) return withEarlierAttempts(last, earlier);
    if (!areAttemptsFree) earlier.push({ usage, cost });
  }
}
