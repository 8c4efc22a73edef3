import type { Trajectory, UnscoredCause } from "@aenv/contract";
import type { EpisodeSpec } from "../episode/play.ts";
import { type Spent, withEarlierAttempts } from "../stats/earlier-attempts.ts";
import type { Concurrency } from "./concurrency.ts";
import type { PlannedEpisode } from "./plan.ts";

export interface RunnerOptions {
  readonly run: string | null;
  readonly concurrency: Concurrency;
  /** Further attempts after an outcome that is unscored and retryable. */
  readonly retries: number;
  /** Other numbers for some causes. */
  readonly retriesOf?: Readonly<Partial<Record<UnscoredCause, number>>>;
  readonly play: (spec: EpisodeSpec) => Promise<Trajectory>;
  /** Takes the last attempt of each episode; the next begins when it has been taken. */
  readonly onEpisode: (trajectory: Trajectory, planned: PlannedEpisode) => Promise<void>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly cancel: AbortSignal;
}

/**
 * Plays the episodes of a plan, as many at once as may be. Each episode gives exactly one trajectory: its last attempt. Cancelled
 * episodes give none, so that a later run plays them. It holds only what runs now, however many there are.
 */
export async function runEpisodes(plan: Iterable<PlannedEpisode> | AsyncIterable<PlannedEpisode>, options: RunnerOptions): Promise<void> {
  const { concurrency, cancel } = options;
  const running = new Set<Promise<void>>();
  let failure: unknown;
  let hasFailed = false;
  try {
    for await (const planned of plan) {
      await concurrency.begin();
      if (cancel.aborted || hasFailed) {
        concurrency.end();
        break;
      }
      const one = playPlanned(planned, options)
        .catch((error: unknown) => {
          hasFailed = true;
          failure ??= error;
        })
        .finally(() => {
          running.delete(one);
          concurrency.end();
        });
      running.add(one);
    }
  } finally {
    // Also if the plan cannot be read any further: what is played has instances, and its trajectory is written.
    await Promise.all(running);
  }
  if (hasFailed) throw failure;
}

async function playPlanned(planned: PlannedEpisode, options: RunnerOptions): Promise<void> {
  const { run, retries, retriesOf = {}, play, onEpisode, metadata = {}, cancel } = options;
  const { id, task, group, seed } = planned;
  const earlier: Spent[] = [];
  for (let attempt = 0; ; attempt++) {
    const trajectory = await play({ id, run, attempt, task, group, seed, metadata });
    const { outcome } = trajectory;
    if (cancel.aborted && outcome.kind === "unscored") return;
    const isLast = outcome.kind === "scored" || !outcome.retryable || attempt >= (retriesOf[outcome.cause] ?? retries);
    if (isLast) return onEpisode(withEarlierAttempts(trajectory, earlier), planned);
    earlier.push({ usage: trajectory.usage, cost: trajectory.cost });
  }
}
