import { type ChatMessage, canonicalJson } from "@aenv/contract";
import { parseArguments } from "@aenv/sdk/adapters";

/** Whether a conversation goes on with the words and calls of another one. */
export function isBeginningOf(beginning: readonly ChatMessage[], whole: readonly ChatMessage[]): boolean {
  return beginning.length <= whole.length && beginning.every((message, at) => keyOf(message) === keyOf(whole[at] as ChatMessage));
}

/**
 * What a model reads of a message. Clients send a model's own message back with small changes: no reasoning, null for an empty text,
 * text as a part, spaces in arguments.
 */
function keyOf({ role, content, tool_calls = [], tool_call_id }: ChatMessage): string {
  const calls = tool_calls.map(({ id, function: { name, arguments: text } }) => {
    const parsed = parseArguments(text);
    return [id, name, parsed.ok ? parsed.value : text];
  });
  return canonicalJson([role === "developer" ? "system" : role, contentKey(content), calls, tool_call_id ?? ""]);
}

function contentKey(content: ChatMessage["content"]): unknown {
  if (!Array.isArray(content)) return content ?? "";
  return content.every((part) => part.type === "text") ? content.map(({ text }) => String(text)).join("") : content;
}
