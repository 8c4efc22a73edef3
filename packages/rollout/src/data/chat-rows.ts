import { type ChatMessage, parseBoundedJson, type ToolDescriptor, type Trajectory, textOf } from "@aenv/contract";

/** How trainers want the arguments of tool calls: most chat templates need an object, OpenAI's format a string. */
export type ArgumentForm = "object" | "string";

/** The messages as trainers read them: only fields that they know, no null, and an assistant message at the end. */
export function trainingMessages(messages: readonly ChatMessage[], form: ArgumentForm): Record<string, unknown>[] {
  const rows = messages.map((message) => trainingMessage(message, form));
  while (rows.length > 0 && rows.at(-1)?.role !== "assistant") rows.pop();
  return rows;
}

function trainingMessage(message: ChatMessage, form: ArgumentForm): Record<string, unknown> {
  const { role, tool_calls, tool_call_id, name, reasoning_content } = message;
  return {
    role,
    content: textOf(message),
    ...(typeof reasoning_content === "string" && reasoning_content !== "" && { reasoning_content }),
    ...(tool_calls !== undefined && {
      tool_calls: tool_calls.map(({ id, type, function: { name: called, arguments: args } }) => ({
        id,
        type,
        function: { name: called, arguments: form === "string" ? args : parse(args) },
      })),
    }),
    ...(tool_call_id !== undefined && { tool_call_id }),
    ...(name !== undefined && { name }),
  };
}

/** Tools in the form of function calling. */
export function trainingTools(tools: readonly ToolDescriptor[]): Record<string, unknown>[] {
  return tools.map(({ name, description, inputSchema }) => ({
    type: "function",
    function: { name, description: description ?? "", parameters: { type: "object", properties: {}, ...inputSchema } },
  }));
}

/** Whether a trajectory can be learned from: the agent has said or done something. */
export function hasAgentMessage({ messages }: Pick<Trajectory, "messages">): boolean {
  return messages.some(({ role }) => role === "assistant");
}

function parse(text: string): unknown {
  try {
    return parseBoundedJson(text.trim() === "" ? "{}" : text);
  } catch {
    // What the model wrote is no JSON; a template can still show it.
    return text;
  }
}
