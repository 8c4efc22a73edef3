import type { Task } from "../task/model.ts";
import { exceptionType, isCausedByAgent } from "../trial/failure.ts";
import { trialRewards } from "../trial/plan/stop.ts";
import { outcomeOf, type StepReport, type TrialReport } from "../trial/report.ts";
import { scalarReward } from "../verifier/rewards.ts";

/** The reward of an episode, with the fields of the original's answer beside it. */
export interface Score {
  readonly reward: number;
  readonly rewards: Readonly<Record<string, number>>;
  readonly steps?: readonly { readonly name: string; readonly rewards: Readonly<Record<string, number>> | null }[];
  readonly task_name: string;
  readonly status: "success" | "timeout" | "error";
  /** Why the status is not `success`. */
  readonly error?: string;
  /** In Terminal-Bench 1, the share of tests that passed. */
  readonly score: number;
  readonly raw_output: string;
}

/** The score of a report. A verification that failed has none, which is not the score 0, unless the agent caused the failure. */
export function scoreOf(task: Task, taskId: string, report: TrialReport, output: string): Score {
  const failure = report.failure ?? report.steps.at(-1)?.failure ?? null;
  if (failure !== null && !isCausedByAgent(failure)) throw causeOf(failure);
  const rewards = failure === null ? report.rewards : rewardsWithZeros(task, report.steps);
  const reward = scalarReward(rewards);
  if (rewards === null || reward === null) throw new Error("the verifier gave no reward");
  const share = report.steps.at(-1)?.verification?.tb1?.score;
  return {
    reward,
    rewards,
    ...(task.steps.length > 0 && {
      steps: report.steps.map(({ name, verification }) => ({ name: name ?? "", rewards: verification?.rewards ?? null })),
    }),
    task_name: taskId,
    ...(failure === null ? { status: "success" } : { status: statusOf(failure), error: failure.message }),
    score: share ?? reward,
    raw_output: output,
  };
}

/** The rewards if a step whose verification failed is worth 0; result files have none for it, as those of the reference. */
function rewardsWithZeros({ steps: taskSteps, config }: Task, steps: readonly StepReport[]): Readonly<Record<string, number>> | null {
  if (taskSteps.length === 0) return { reward: 0 };
  const outcomes = steps.map((step) =>
    isCausedByAgent(step.failure) ? { rewards: { reward: 0 }, isVerified: true, hasException: true } : outcomeOf(step),
  );
  return trialRewards(outcomes, config.multi_step_reward_strategy);
}

function statusOf(failure: Error): Score["status"] {
  return exceptionType(failure) === "VerifierTimeoutError" ? "timeout" : "error";
}

/** A failure of the platform, if that is the reason, so that it is known as one; its code says what it is. */
function causeOf(failure: Error): Error {
  for (let error: unknown = failure; error instanceof Error; error = error.cause)
    if (typeof (error as { code?: unknown }).code === "string") return error;
  return failure;
}
