import { type ChatMessage, type SessionAction, type SessionStep, textOf } from "@aenv/contract";
import type { Episode } from "@aenv/rollout";

/** The answer to a step of an episode that is over. */
const OVER_TEXT = "not run: the episode is over";
export const OVER: SessionStep = {
  observation: OVER_TEXT,
  content: [{ type: "text", text: OVER_TEXT }],
  is_error: true,
  done: true,
  reward: null,
};

/** Calls a tool, or says something. */
export async function takeStep(episode: Episode, action: SessionAction): Promise<SessionStep> {
  const { messages, steps } = episode.record;
  const before = { messages: messages.length + 1, steps: steps.length };
  const message = messageOf(action, messages.length);
  episode.addMessage(message);
  const reason = await episode.take(message);
  const said = messages.slice(before.messages);
  const step = steps[before.steps];
  const observation = said.map(textOf).join("\n\n");
  return {
    observation,
    content: step?.result.content ?? (observation === "" ? [] : [{ type: "text", text: observation }]),
    ...(step?.result.structured_content !== undefined && { structured_content: step.result.structured_content }),
    is_error: step?.result.is_error ?? false,
    done: reason !== null,
    reward: step?.reward ?? null,
  };
}

/** What an agent reads at the beginning. */
export function observationOf(messages: readonly ChatMessage[]): string {
  const shown = messages.filter(({ role }) => role !== "system" && role !== "developer");
  return shown.map(textOf).join("\n\n");
}

function messageOf(action: SessionAction, at: number): ChatMessage {
  if ("text" in action) return { role: "assistant", content: action.text };
  const { name, arguments: args } = action.tool;
  return {
    role: "assistant",
    content: "",
    tool_calls: [{ id: `call_${at}`, type: "function", function: { name, arguments: JSON.stringify(args) } }],
  };
}
