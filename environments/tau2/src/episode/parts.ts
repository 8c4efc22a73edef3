import type { ChatMessage, OracleAction } from "@aenv/kit";
import { STOP_TOKEN } from "../conversation/history.ts";
import { toWire } from "../llm/wire.ts";
import { writeJson } from "../python/json/writer.ts";
import type { ActionResult, Episode } from "./episode.ts";

/** The messages of the benchmark's own agent: its system prompt, then the conversation so far. */
export function promptOf(episode: Episode): ChatMessage[] {
  return [{ role: "system", content: episode.systemPrompt() }, ...episode.opening.map((message) => toWire(message) as ChatMessage)];
}

export function statusOf({ isDone, terminationReason, unscored }: Episode): { readonly done: boolean; readonly reason?: string } {
  const reason = terminationReason ?? unscored;
  return { done: isDone, ...(reason !== null && { reason }) };
}

/** What the benchmark's agent sees of a tool's result. The tool `done` ends the conversation, so nothing answers it. */
export function observationOf({ observation }: ActionResult, { terminationReason }: Episode): string {
  return terminationReason === "agent_stop" ? "" : observation;
}

/**
 * The task's golden actions, then the end of the episode. The last words contain what the task wants the agent to communicate.
 * Null if the task has no golden actions, or some that only the user can do.
 */
export function solutionOf({ task, isSolo }: Episode): OracleAction[] | null {
  const { actions = null, communicate_info = null } = task.evaluation_criteria ?? {};
  if (actions === null) return null;
  if (!isSolo && actions.some(({ requestor }) => requestor === "user")) return null;
  const calls = actions.map(({ name, arguments: args }) => callOf(name, writeJson(args)));
  if (isSolo || communicate_info === null || communicate_info.length === 0) return [...calls, { tool: "done", arguments: {} }];
  return [...calls, { say: [...communicate_info, STOP_TOKEN].join("\n") }];
}

/** Some golden actions have `2.0`, which the text keeps. */
function callOf(tool: string, argumentsText: string): OracleAction {
  return { tool, arguments: JSON.parse(argumentsText) as Record<string, unknown>, arguments_text: argumentsText };
}
