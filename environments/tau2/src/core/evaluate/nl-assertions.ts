import type { Judge as JudgeOf } from "@aenv/kit";
import type { Message } from "../messages/messages.ts";
import type { Task } from "../tasks.ts";
import { asReward, type NlCheck, type RewardInfo } from "./reward.ts";

/** Statements about a conversation. */
export interface Assertions {
  readonly assertions: readonly string[];
  readonly trajectory: readonly Message[];
}

/** Decides whether statements about a conversation are true, usually with a model. */
export type Judge = JudgeOf<Assertions, readonly NlCheck[]>;

export function needsJudge(task: Task): boolean {
  return (task.evaluation_criteria?.nl_assertions ?? []).length > 0;
}

export async function evaluateNlAssertions(
  task: Task,
  trajectory: readonly Message[],
  judge: Judge | null,
  signal?: AbortSignal,
): Promise<RewardInfo> {
  const assertions = task.evaluation_criteria?.nl_assertions ?? [];
  if (assertions.length === 0) {
    return { reward: 1, nl_assertions: [], reward_breakdown: { NL_ASSERTION: 1 }, info: { note: "No nl_assertions to evaluate" } };
  }
  if (judge === null) throw new Error("natural-language assertions need a judge: check needsJudge() first");
  const nl_assertions = await judge.judge({ assertions, trajectory }, signal);
  const reward = asReward(nl_assertions.every(({ met }) => met));
  return { reward, nl_assertions, reward_breakdown: { NL_ASSERTION: reward } };
}
