import { equals, lookup } from "../../python/equality.ts";
import type { Dict, PyValue } from "../../python/values/values.ts";
import { isParticipant, type Message, type ToolCall } from "../messages/messages.ts";
import type { GoldenAction, Task } from "../tasks.ts";
import type { ToolKind } from "../tools/tool.ts";
import { type ActionCheck, asReward, type RewardInfo } from "./reward.ts";

/** Checks for each golden action whether a call of the trajectory matches it, in any order. */
export function evaluateActions(task: Task, trajectory: readonly Message[], kinds: ReadonlyMap<string, ToolKind> | null): RewardInfo {
  const actions = task.evaluation_criteria?.actions ?? [];
  if (actions.length === 0) {
    return { reward: 1, action_checks: null, reward_breakdown: { ACTION: 1 }, info: { note: "No actions to evaluate" } };
  }
  const calls = trajectory.filter(isParticipant).flatMap(({ tool_calls }) => tool_calls ?? []);
  const action_checks = actions.map((action): ActionCheck => {
    const isMatch = calls.some((call) => matches(action, call));
    return { action, action_match: isMatch, action_reward: asReward(isMatch), tool_type: kinds?.get(action.name) ?? null };
  });
  const reward = asReward(action_checks.every(({ action_match }) => action_match));
  return { reward, action_checks, reward_breakdown: { ACTION: reward } };
}

/** Without `compare_args` the arguments of the call are compared, so a call with fewer arguments than the golden action can match. */
export function matches(action: GoldenAction, call: ToolCall): boolean {
  if (action.name !== call.name) return false;
  const keys: readonly PyValue[] = action.compare_args ?? [...call.arguments.keys()];
  return keys.every((key) => sameAt(action.arguments, call.arguments, key));
}

function sameAt(a: Dict, b: Dict, key: PyValue): boolean {
  const left = lookup(a, key);
  const right = lookup(b, key);
  return left === undefined || right === undefined ? left === right : equals(left, right);
}
