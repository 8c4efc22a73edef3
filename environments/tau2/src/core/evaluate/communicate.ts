import { isParticipant, type Message, textOf } from "../messages/messages.ts";
import type { Task } from "../tasks.ts";
import { asReward, type CommunicateCheck, type RewardInfo } from "./reward.ts";

/** Checks for each piece of information whether a message of the agent contains it. */
export function evaluateCommunicate(task: Task, trajectory: readonly Message[]): RewardInfo {
  const infos = task.evaluation_criteria?.communicate_info ?? [];
  if (infos.length === 0) {
    const note = "No communicate_info to evaluate";
    return { reward: 1, communicate_checks: null, reward_breakdown: { COMMUNICATE: 1 }, info: { note } };
  }
  const texts = trajectory
    .filter(isParticipant)
    .filter(({ role }) => role === "assistant")
    .map(textOf);
  const communicate_checks = infos.map((info) => check(info, texts));
  const reward = asReward(communicate_checks.every(({ met }) => met));
  return { reward, communicate_checks, reward_breakdown: { COMMUNICATE: reward } };
}

/** As in the reference, commas are removed from the message but not from the info, so an info with a comma is never found. */
function check(info: string, texts: readonly (string | null)[]): CommunicateCheck {
  const said = texts.find((text) => text?.toLowerCase().replaceAll(",", "").includes(info.toLowerCase()));
  return said == null
    ? { info, met: false, justification: `Information '${info}' not communicated.` }
    : { info, met: true, justification: `Information '${info}' communicated in the message:\n '${said}'` };
}
