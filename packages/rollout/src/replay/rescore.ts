import type { Outcome, Step, Trajectory } from "@aenv/contract";
import { type Divergence, playAgain, type ReplayOptions } from "./replay.ts";

export type RescoreResult =
  | {
      readonly kind: "scored";
      readonly outcome: Outcome;
      /** The same steps with the new version's step rewards. */
      readonly steps: Step[];
      readonly rewardDigest: string | null;
    }
  | { readonly kind: "diverged"; readonly divergence: Divergence };

/**
 * Scores a trajectory with another version of its environment: its actions are played again there. If the environment answers anything
 * else than before, the trajectory is not one of the new version, and gets no score.
 */
export async function rescore(trajectory: Trajectory, options: ReplayOptions): Promise<RescoreResult> {
  const { episode, divergence } = await playAgain(trajectory, options);
  if (divergence !== null) return { kind: "diverged", divergence };
  const outcome = await episode.score(trajectory.reward_args);
  const steps = trajectory.steps.map((step, at) => ({ ...step, reward: episode.record.steps[at]?.reward ?? null }));
  return { kind: "scored", outcome, steps, rewardDigest: episode.rewardDigest };
}

/** Whether a trajectory holds a whole episode: it was scored, or only its score failed. */
export function canBeRescored({ outcome }: Pick<Trajectory, "outcome">): boolean {
  return outcome.kind === "scored" || outcome.stage === "score";
}
