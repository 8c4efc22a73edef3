import type { Task } from "../task/model.ts";
import type { ManifestEntry } from "./plan/artifacts.ts";
import { type StepOutcome, trialRewards } from "./plan/stop.ts";
import type { Verification } from "./run-tests.ts";

export interface Interval {
  readonly startedAt: number;
  readonly finishedAt: number;
}

export interface StepReport {
  readonly name: string | null;
  readonly agentExecution: Interval | null;
  readonly verifierExecution: Interval | null;
  readonly verification: Verification | null;
  readonly failure: Error | null;
  readonly manifest: readonly ManifestEntry[];
}

export interface TrialReport {
  readonly environmentSetup: Interval | null;
  readonly steps: readonly StepReport[];
  readonly rewards: Readonly<Record<string, number>> | null;
  /** Keys of `rewards` that were written as whole numbers. */
  readonly integers: readonly string[];
  /** Failure of the trial itself. Failures of steps are in their reports. */
  readonly failure: Error | null;
}

/** The report of a trial with these steps. */
export function trialReport(
  { steps: taskSteps, config }: Task,
  steps: readonly StepReport[],
  environmentSetup: Interval | null,
): TrialReport {
  if (taskSteps.length > 0) {
    const rewards = trialRewards(steps.map(outcomeOf), config.multi_step_reward_strategy);
    return { environmentSetup, steps, rewards, integers: [], failure: null };
  }
  // A task without steps has one report, whose failure is the trial's.
  const [only] = steps;
  const { rewards = null, integers = [] } = only?.verification ?? {};
  return { environmentSetup, steps, rewards, integers, failure: only?.failure ?? null };
}

export function outcomeOf({ verification, failure }: StepReport): StepOutcome {
  return { rewards: verification?.rewards ?? null, isVerified: verification !== null, hasException: failure !== null };
}
