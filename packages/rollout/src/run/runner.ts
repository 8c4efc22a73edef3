import type { Trajectory } from "@aenv/contract";
import type { EpisodeSpec } from "../episode/play.ts";
import { withEarlierAttempts } from "../stats/earlier-attempts.ts";
import { playAttempts, type RetryPolicy } from "./attempts.ts";
import type { Concurrency } from "./concurrency.ts";
import type { PlannedEpisode } from "./plan.ts";

export interface RunnerOptions extends RetryPolicy {
  readonly run: string | null;
  readonly concurrency: Concurrency;
  readonly play: (spec: EpisodeSpec) => Promise<Trajectory>;
  /** Takes the last attempt of each episode; the next begins when it has been taken. */
  readonly onEpisode: (trajectory: Trajectory, planned: PlannedEpisode) => Promise<void>;
  readonly metadata?: Readonly<Record<string, unknown>>;
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
  const { run, play, onEpisode, metadata = {}, cancel } = options;
  const { id, task, group, seed } = planned;
  const { last, earlier } = await playAttempts(options, (attempt) => play({ id, run, attempt, task, group, seed, metadata }));
  if (cancel.aborted && last.outcome.kind === "unscored") return;
  await onEpisode(withEarlierAttempts(last, earlier), planned);
}
