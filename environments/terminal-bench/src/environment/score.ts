import type { Task } from "../task/model.ts";
import type { TrialReport } from "../trial/report.ts";
import { scalarReward } from "../verifier/rewards.ts";

/** The reward of an episode, with the fields of the original's answer beside it. */
export interface Score {
  readonly reward: number;
  readonly rewards: Readonly<Record<string, number>>;
  readonly steps?: readonly { readonly name: string; readonly rewards: Readonly<Record<string, number>> | null }[];
  readonly task_name: string;
  readonly status: "success";
  /** In Terminal-Bench 1, the share of tests that passed. */
  readonly score: number;
  readonly raw_output: string;
}

/** The score of a report. A verification that failed has none, which is not the score 0. */
export function scoreOf(task: Task, taskId: string, report: TrialReport, output: string): Score {
  const failure = report.failure ?? report.steps.at(-1)?.failure ?? null;
  if (failure !== null) throw causeOf(failure);
  const reward = scalarReward(report.rewards);
  if (report.rewards === null || reward === null) {
    const keys = Object.keys(report.rewards ?? {});
    throw new Error(
      keys.length === 0
        ? "the verifier gave no reward"
        : `the verifier gave several rewards (${keys.join(", ")}), and none is called 'reward'`,
    );
  }
  const share = report.steps.at(-1)?.verification?.tb1?.score;
  return {
    reward,
    rewards: report.rewards,
    ...(task.steps.length > 0 && {
      steps: report.steps.map(({ name, verification }) => ({ name: name ?? "", rewards: verification?.rewards ?? null })),
    }),
    task_name: taskId,
    status: "success",
    score: share ?? reward,
    raw_output: output,
  };
}

/** A failure of the platform, if that is the reason, so that it is known as one; its code says what it is. */
function causeOf(failure: Error): Error {
  for (let error: unknown = failure; error instanceof Error; error = error.cause)
    if (typeof (error as { code?: unknown }).code === "string") return error;
  return failure;
}
