import type { Outcome, Provenance, Trajectory } from "@aenv/contract";
import * as z from "zod";
import { EpisodeDeadline, type Lease } from "../episode/play.ts";
import { unscoredBy } from "../player/failure.ts";
import { type Divergence, divergenceText } from "../replay/replay.ts";
import { canBeRescored, rescore } from "../replay/rescore.ts";
import type { RunFolder } from "./folder.ts";
import type { PlannedEpisode } from "./plan.ts";
import { playRun, type RunOptions, type RunResult } from "./run.ts";

export interface RescoreRunOptions extends Pick<RunOptions, "folder" | "settings" | "concurrency" | "retries" | "onProgress" | "cancel"> {
  /** The run whose trajectories are scored again. */
  readonly from: RunFolder;
  /** A fresh instance of the new version. */
  readonly acquire: (trajectory: Trajectory, signal: AbortSignal) => Promise<Lease>;
  /** How long an attempt may take in all. */
  readonly deadlineMs: number;
  readonly configDigest: string;
  readonly now: () => number;
}

/** What the metadata of a rescored trajectory say. */
const rescoredMetadata = z.looseObject({
  from: z.string(),
  outcome: z.looseObject({ kind: z.string() }),
  divergence: z.unknown().optional(),
});

/** A trajectory's old outcome beside the new one. */
export interface Rescored {
  readonly id: string;
  readonly task: string;
  readonly before: Outcome;
  readonly after: Outcome;
  /** Where the replay went another way; such a trajectory has no new score. */
  readonly divergence: Divergence | null;
}

/**
 * Scores the trajectories of a run with another version of its environment, into a run of its own. Trajectories that the new version
 * answers differently, and those that never came to a score, are unscored there.
 */
export async function rescoreRun(options: RescoreRunOptions): Promise<RunResult> {
  const { from, folder, settings, concurrency, retries, onProgress, cancel } = options;
  let total = 0;
  for await (const _ of from.trajectories()) total++;
  // Only those that are being played, so that a run of any size can be rescored.
  const waiting = new Map<string, Trajectory>();
  async function* plan(): AsyncGenerator<PlannedEpisode> {
    let number = 0;
    for await (const one of from.trajectories()) {
      const id = renamed(one.id, folder.name);
      waiting.set(id, one);
      yield { number: number++, id, task: one.task, group: one.group ?? { id, index: 0, size: 1 }, seed: one.seed };
    }
  }
  return playRun({
    folder,
    settings,
    concurrency,
    retries,
    // An attempt to rescore uses no model, and what the trajectory has cost counts once.
    areAttemptsFree: true,
    cancel,
    ...(onProgress && { onProgress }),
    episodes: { total, plan: plan() },
    onDone: ({ id }) => void waiting.delete(id),
    play: async ({ id, run, attempt }) => {
      const trajectory = waiting.get(id) as Trajectory;
      return { ...(await rescoreOne(trajectory, options)), id, run, attempt, ...familyOf(trajectory, folder.name) };
    },
  });
}

/** What `rescoreRun` noted of a trajectory; null for one that it did not write. */
export function readRescored({ id, task, outcome, metadata }: Trajectory): Rescored | null {
  const parsed = rescoredMetadata.safeParse(metadata.rescored);
  if (!parsed.success) return null;
  const { outcome: before, divergence = null } = parsed.data;
  return { id, task: task.id ?? "", before: before as Outcome, after: outcome, divergence: divergence as Divergence | null };
}

async function rescoreOne(
  trajectory: Trajectory,
  { acquire, deadlineMs, configDigest, cancel, now }: RescoreRunOptions,
): Promise<Trajectory> {
  const { id: from, outcome: before, metadata } = trajectory;
  const noted = (own: object = {}) => ({ ...metadata, rescored: { from, outcome: before, ...own } });
  if (!canBeRescored(trajectory)) return { ...trajectory, metadata: noted() };
  using deadline = new EpisodeDeadline(deadlineMs, cancel);
  const { signal } = deadline;
  let lease: Lease | null = null;
  try {
    lease = await acquire(trajectory, signal);
    const result = await rescore(trajectory, { instance: lease.instance, signal, now });
    // What was cut off may look like another answer.
    if (deadline.isOver) throw signal.reason;
    const provenance: Provenance = { ...trajectory.provenance, ...lease.provenance, config_digest: configDigest };
    if (result.kind === "diverged") {
      const { divergence } = result;
      const message = `not scored, because the new version answers other than before: ${divergenceText(divergence)}`;
      const outcome: Outcome = { kind: "unscored", cause: "environment", stage: "play", retryable: false, message };
      return { ...trajectory, provenance, outcome, metadata: noted({ divergence }) };
    }
    const { outcome, steps, roles, rewardDigest } = result;
    const scored = { outcome, steps, ...(roles && { roles }) };
    return { ...trajectory, provenance: { ...provenance, reward_digest: rewardDigest }, ...scored, metadata: noted() };
  } catch (error) {
    return { ...trajectory, outcome: unscoredBy(deadline.isOver ? signal.reason : error, "score", cancel), metadata: noted() };
  } finally {
    await lease?.release(false);
  }
}

/** Group and parent under the name of the new run. */
function familyOf({ group, parent }: Trajectory, run: string): Pick<Trajectory, "group" | "parent"> {
  return {
    group: group && { ...group, id: renamed(group.id, run) },
    parent: parent && { ...parent, id: renamed(parent.id, run) },
  };
}

function renamed(id: string, run: string): string {
  return `${run}/${id.slice(id.lastIndexOf("/") + 1)}`;
}
