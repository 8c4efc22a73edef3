import type { Outcome, Step, Trajectory } from "@aenv/contract";
import { Match } from "../episode/match.ts";
import type { Played } from "../episode/play.ts";
import { type Divergence, playAgain, type ReplayOptions, stepsOf } from "./replay.ts";

export type RescoreResult =
  | {
      readonly kind: "scored";
      readonly outcome: Outcome;
      /** The same roles with their new outcomes; absent in an environment without roles. */
      readonly roles?: NonNullable<Trajectory["roles"]>;
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
  const { episode, divergence } = await playAgain(trajectory, { ...options, recordingMode: "fill" });
  if (divergence !== null) return { kind: "diverged", divergence };
  const outcome = await episode.score(trajectory.reward_args);
  const played = stepsOf(episode);
  const steps = trajectory.steps.map((step, at) => ({ ...step, reward: played[at]?.reward ?? null }));
  const roles = rescoredRoles(trajectory, episode, outcome);
  return { kind: "scored", outcome, steps, ...(roles && { roles }), rewardDigest: episode.rewardDigest };
}

function rescoredRoles({ roles }: Trajectory, episode: Played, outcome: Outcome): Trajectory["roles"] {
  if (roles === undefined || !(episode instanceof Match)) return undefined;
  const outcomes = episode.outcomes(outcome);
  return Object.fromEntries(Object.entries(roles).map(([role, one]) => [role, { ...one, outcome: outcomes[role] ?? one.outcome }]));
}

/** Whether a trajectory holds a whole episode: it was scored, or only its score failed. */
export function canBeRescored({ outcome }: Pick<Trajectory, "outcome">): boolean {
  return outcome.kind === "scored" || outcome.stage === "score";
}
