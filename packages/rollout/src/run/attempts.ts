import type { Trajectory, UnscoredCause } from "@aenv/contract";
import type { Spent } from "../stats/earlier-attempts.ts";

/** How often an episode is played again. */
export interface RetryPolicy {
  /** Further attempts after an outcome that is unscored and retryable. */
  readonly retries: number;
  /** Other numbers for some causes. */
  readonly retriesOf?: Readonly<Partial<Record<UnscoredCause, number>>>;
  readonly cancel: AbortSignal;
}

export interface Attempts {
  readonly last: Trajectory;
  /** What the attempts before the last one used. */
  readonly earlier: readonly Spent[];
}

/** Plays an episode until it is scored, or must not be retried. Null if `play` gives null: the episode is no longer the caller's. */
export function playAttempts(policy: RetryPolicy, play: (attempt: number) => Promise<Trajectory>): Promise<Attempts>;
export function playAttempts(
  policy: RetryPolicy,
  play: (attempt: number) => Promise<Trajectory | null>,
  first: number,
): Promise<Attempts | null>;
export async function playAttempts(
  { retries, retriesOf = {}, cancel }: RetryPolicy,
  play: (attempt: number) => Promise<Trajectory | null>,
  first = 0,
): Promise<Attempts | null> {
  const earlier: Spent[] = [];
  for (let attempt = first; ; attempt++) {
    const last = await play(attempt);
    if (last === null) return null;
    const { outcome, usage, cost } = last;
    const isLast = outcome.kind === "scored" || !outcome.retryable || attempt >= (retriesOf[outcome.cause] ?? retries);
    if (isLast || cancel.aborted) return { last, earlier };
    earlier.push({ usage, cost });
  }
}
