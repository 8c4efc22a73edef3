import type { ChatMessage } from "@aenv/kit";
import type { AtifStep } from "./schema.ts";
import type { AtifTrajectory } from "./trajectory.ts";

/** A trajectory as the messages of a conversation, which an agent continues. */
export function contextMessages({ steps }: Pick<AtifTrajectory, "steps">): readonly ChatMessage[] {
  let messages: ChatMessage[] = [];
  for (const step of steps) {
    // What is before such a step is no longer in the context of the model: its observation stands for it.
    if (isReplacement(step)) messages = [];
    messages.push(...messagesOf(step));
  }
  return messages;
}

function isReplacement({ extra }: AtifStep): boolean {
  const change = extra?.context_management as { readonly boundary?: unknown } | null | undefined;
  return change?.boundary === "replace";
}

function messagesOf({ source, message, tool_calls, observation }: AtifStep): ChatMessage[] {
  const results = observation?.results ?? [];
  const ofCall = (id: string | null) => results.filter(({ source_call_id }) => source_call_id === id).map(({ content }) => textOf(content));
  const own = [textOf(message), ...ofCall(null)].filter((text) => text !== "").join("\n");
  if (source !== "agent") return [{ role: source, content: own }];
  const calls = tool_calls ?? [];
  if (calls.length === 0) return [{ role: "assistant", content: own }];
  return [
    {
      role: "assistant",
      content: own,
      tool_calls: calls.map(({ tool_call_id, function_name, arguments: given }) => ({
        id: tool_call_id,
        type: "function",
        function: { name: function_name, arguments: JSON.stringify(given) },
      })),
    },
    ...calls.map(({ tool_call_id }): ChatMessage => ({ role: "tool", tool_call_id, content: ofCall(tool_call_id).join("\n") })),
  ];
}

/** Pictures and sounds are named by their paths. */
function textOf(content: AtifStep["message"] | null): string {
  if (content === null || typeof content === "string") return content ?? "";
  return content.map(({ type, text, source }) => text ?? `[${type} ${source?.path}]`).join("\n");
}
