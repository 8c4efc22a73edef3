import type { Trajectory } from "@aenv/contract";
import type { EpisodeSpec } from "../episode/play.ts";
import { type EpisodeScore, type RunSummary, scoreOf, summarise } from "../stats/summary.ts";
import { playAttempts, type RetryPolicy } from "./attempts.ts";
import type { Concurrency } from "./concurrency.ts";
import type { RunFolder } from "./folder.ts";
import { type PlannedEpisode, planEpisodes, planSize } from "./plan.ts";
import type { RunSettings } from "./settings.ts";

export interface RunOptions extends RetryPolicy {
  readonly folder: RunFolder;
  readonly settings: RunSettings;
  readonly concurrency: Concurrency;
  /** Whether episodes that ended unscored in an earlier call are played again. */
  readonly playsUnscoredAgain?: boolean;
  /** The episodes, if they are not those that the settings plan. */
  readonly episodes?: { readonly total: number; readonly plan: Iterable<PlannedEpisode> | AsyncIterable<PlannedEpisode> };
  readonly play: (spec: EpisodeSpec) => Promise<Trajectory>;
  /** Called with each episode that is done with: its trajectory is in the folder. */
  readonly onDone?: (planned: Pick<PlannedEpisode, "id" | "group">) => void | Promise<void>;
  /** Called with the trajectory of every episode, those of earlier calls first, before `onDone`. */
  readonly onEpisode?: (trajectory: Trajectory) => Promise<void>;
  readonly onProgress?: (progress: RunProgress) => void;
}

/** What a view of a run shows while it runs. */
export interface RunProgress {
  readonly total: number;
  readonly done: number;
  readonly running: number;
  readonly limit: number;
  /** The last episode that ended; null before the first. */
  readonly last: Trajectory | null;
  readonly scores: readonly EpisodeScore[];
}

export interface RunResult {
  readonly summary: RunSummary;
  /** False if it was cancelled before all episodes were played. */
  readonly isComplete: boolean;
  /** Episodes that an earlier call had played already. */
  readonly resumed: number;
  /** Episodes of the plan. */
  readonly total: number;
}

/**
 * Plays a run, or goes on with one: episodes whose trajectory is in the folder are not played again. Each episode gives
 * one trajectory, that of its last attempt, which is written as soon as the episode has ended.
 */
export async function playRun(options: RunOptions): Promise<RunResult> {
  const { folder, settings, concurrency, play, onDone, onEpisode, onProgress, cancel } = options;
  const { name: run } = folder;
  using _ = folder.begin(settings);
  if (options.playsUnscoredAgain === true) await folder.forget(({ outcome }) => outcome.kind === "unscored");
  if (settings.fork_at !== undefined) await folder.forgetPartialGroups();
  if (onEpisode !== undefined) for await (const earlier of folder.trajectories()) await onEpisode(earlier);
  const played = new Set<string>();
  const scores: EpisodeScore[] = [];
  const { total, plan } = options.episodes ?? { total: planSize(settings), plan: planEpisodes({ run, ...settings }) };
  await using writer = await folder.openTrajectories((stored) => {
    played.add(stored.id);
    scores.push(scoreOf(stored));
  });
  const resumed = played.size;
  const progress = (last: Trajectory | null) => {
    // The episode that has just ended still has its place.
    const running = concurrency.running - (last === null ? 0 : 1);
    onProgress?.({ total, done: scores.length, running, limit: concurrency.limit, last, scores });
  };
  progress(null);
  await concurrency.forEach(unplayed(plan, played, onDone), cancel, async (planned) => {
    const { id, task, group, seed } = planned;
    const trajectory = await playAttempts(options, (attempt) => play({ id, run, attempt, task, group, seed, metadata: {} }));
    // A cancelled episode is left to a later call.
    if (cancel.aborted && trajectory.outcome.kind === "unscored") return;
    await writer.add(trajectory);
    scores.push(scoreOf(trajectory));
    await onEpisode?.(trajectory);
    await onDone?.(planned);
    progress(trajectory);
  });
  await writer.close();
  const summary = summarise(scores, { passReward: settings.pass_reward });
  const isComplete = scores.length === total;
  if (isComplete && folder.summary() === null) await folder.end(summary);
  return { summary, isComplete, resumed, total };
}

async function* unplayed(
  plan: Iterable<PlannedEpisode> | AsyncIterable<PlannedEpisode>,
  played: ReadonlySet<string>,
  onDone: RunOptions["onDone"],
): AsyncGenerator<PlannedEpisode> {
  for await (const planned of plan) {
    if (played.has(planned.id)) await onDone?.(planned);
    else yield planned;
  }
}
