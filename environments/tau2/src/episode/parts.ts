import type { ChatMessage, OracleAction } from "@aenv/kit";
import { toWire } from "../llm/wire.ts";
import { STOP_TOKEN } from "../orchestrator/history.ts";
import { writeJson } from "../python/json/writer.ts";
import type { Dict } from "../python/values/values.ts";
import type { Episode } from "./episode.ts";

/** The messages of the benchmark's own agent: its system prompt, then the conversation so far. */
export function promptOf(episode: Episode): ChatMessage[] {
  return [{ role: "system", content: episode.systemPrompt() }, ...episode.opening.map((message) => toWire(message) as ChatMessage)];
}

export function statusOf({ isDone, terminationReason, unscored }: Episode): { readonly done: boolean; readonly reason?: string } {
  const reason = terminationReason ?? unscored;
  return { done: isDone, ...(reason !== null && { reason }) };
}

/**
 * The task's golden actions, then the end of the episode. The last words contain what the task wants the agent to communicate.
 * Actions of the user belong to the agent only in solo mode. Null if the task has no golden actions.
 */
export function solutionOf({ task, isSolo }: Episode): OracleAction[] | null {
  const { actions = null, communicate_info = null } = task.evaluation_criteria ?? {};
  if (actions === null) return null;
  const own = actions.filter(({ requestor }) => isSolo || requestor === "assistant");
  const calls = own.map(({ name, arguments: args }) => ({ tool: name, arguments: plain(args) }));
  if (isSolo || communicate_info === null || communicate_info.length === 0) return [...calls, { tool: "done", arguments: {} }];
  return [...calls, { say: [...communicate_info, STOP_TOKEN].join("\n") }];
}

function plain(args: Dict): Record<string, unknown> {
  return JSON.parse(writeJson(args)) as Record<string, unknown>;
}
