import { type ChatMessage, canonicalJson, type Trajectory, textOf } from "@aenv/contract";
import { hasAgentMessage, trainingMessages, trainingTools } from "./chat-rows.ts";
import type { Row, Skipped } from "./row.ts";

export interface PairOptions {
  /** The least difference in reward between the chosen and the rejected one. */
  readonly minMargin: number;
  /** Pairs of one group at most. */
  readonly perGroup: number;
}

/** Pairs of trajectories of one group, of which the first has the higher reward: those that differ most first. */
export function preferencePairs(group: readonly Trajectory[], { minMargin, perGroup }: PairOptions): Record<string, unknown>[] {
  const scored = group.flatMap((one) =>
    one.outcome.kind === "scored" && hasAgentMessage(one) ? [{ one, reward: one.outcome.reward }] : [],
  );
  const ordered = scored.sort((a, b) => b.reward - a.reward);
  const rows: Record<string, unknown>[] = [];
  for (let at = 0; rows.length < perGroup && at < ordered.length - 1 - at; at++) {
    const [chosen, rejected] = [ordered[at], ordered[ordered.length - 1 - at]];
    if (chosen === undefined || rejected === undefined || chosen.reward - rejected.reward < minMargin || chosen.reward === rejected.reward)
      break;
    rows.push(pairRow(chosen.one, rejected.one));
  }
  return rows;
}

/** What is known of a group before its pair is written: the first of its best trajectories, and the last of its worst. */
export interface PairEnds {
  readonly count: number;
  readonly chosen: PairEnd | null;
  readonly rejected: PairEnd | null;
}

interface PairEnd {
  readonly id: string;
  readonly reward: number;
}

export function endsWith(ends: PairEnds | undefined, one: Trajectory): PairEnds {
  const { count, chosen, rejected } = ends ?? { count: 0, chosen: null, rejected: null };
  if (one.outcome.kind === "unscored" || !hasAgentMessage(one)) return { count: count + 1, chosen, rejected };
  const end = { id: one.id, reward: one.outcome.reward };
  return {
    count: count + 1,
    chosen: chosen === null || end.reward > chosen.reward ? end : chosen,
    rejected: rejected === null || end.reward <= rejected.reward ? end : rejected,
  };
}

function pairRow(chosen: Trajectory, rejected: Trajectory): Record<string, unknown> {
  const shared = sharedLength(chosen.messages, rejected.messages);
  return {
    prompt: trainingMessagesAll(chosen.messages.slice(0, shared)),
    chosen: trainingMessages(chosen.messages.slice(shared), "object"),
    rejected: trainingMessages(rejected.messages.slice(shared), "object"),
    tools: JSON.stringify(trainingTools(chosen.offered_tools ?? chosen.tools)),
  };
}

/** Rows of a conversation and whether it is wanted: its reward is at least the one that passes. */
export function ktoRows({ messages, tools, offered_tools, outcome }: Trajectory, passReward: number): readonly Row[] | Skipped {
  const begin = messages.findIndex(({ role }) => role === "assistant");
  if (begin < 0 || outcome.kind === "unscored") return "no agent message";
  return [
    {
      prompt: trainingMessagesAll(messages.slice(0, begin)),
      completion: trainingMessages(messages.slice(begin), "object"),
      label: outcome.reward >= passReward,
      tools: JSON.stringify(trainingTools(offered_tools ?? tools)),
    },
  ];
}

/** How many messages both begin with, up to the first that an agent wrote. */
function sharedLength(one: readonly ChatMessage[], other: readonly ChatMessage[]): number {
  const end = one.findIndex(({ role }, at) => role === "assistant" || canonicalJson(one[at]) !== canonicalJson(other[at]));
  return end < 0 ? one.length : end;
}

function trainingMessagesAll(messages: readonly ChatMessage[]): Record<string, unknown>[] {
  return messages.map((message) => ({ role: message.role, content: textOf(message) }));
}
