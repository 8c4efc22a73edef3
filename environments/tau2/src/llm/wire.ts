import { isParticipant, isToolMessage, type Message, type ParticipantMessage, type ToolCall } from "../core/messages/messages.ts";
import { readJsonOr } from "../python/json/reader.ts";
import { writeJson } from "../python/json/writer.ts";
import { Dict, type PyValue } from "../python/values/values.ts";

/** A message in the format of chat completions. */
export function toWire(message: Message): Record<string, unknown> {
  if (isToolMessage(message)) return { role: "tool", content: message.content, tool_call_id: message.id };
  if (!isParticipant(message)) return { role: message.role, content: "content" in message ? message.content : null };
  const { role, content, tool_calls } = message;
  if (role === "user") return { role, content };
  // Left out instead of null: not every endpoint accepts null.
  return { role, content, ...(tool_calls === null ? {} : { tool_calls: tool_calls.map(callToWire) }) };
}

function callToWire({ id, name, arguments: args }: ToolCall): Record<string, unknown> {
  return { id, name, type: "function", function: { name, arguments: writeJson(args) } };
}

/** The message of a chat completion, or what is wrong with it. */
export function fromWire(text: string): ParticipantMessage | { readonly problem: string } {
  const answer = readJsonOr(text, undefined);
  if (answer === undefined) return { problem: "answered with invalid JSON" };
  const choices = member(answer, "choices");
  const message = member(Array.isArray(choices) ? (choices[0] ?? null) : null, "message");
  if (!(message instanceof Dict)) return { problem: "answered without a message" };
  const content = member(message, "content");
  const calls = member(message, "tool_calls");
  const read = Array.isArray(calls) ? calls.map(callFromWire) : [];
  if (read.includes(null)) return { problem: "answered with a tool call that has no name, or whose arguments are not a JSON object" };
  return {
    role: "assistant",
    content: typeof content === "string" ? content : null,
    tool_calls: read.length > 0 ? read.filter((call) => call !== null) : null,
  };
}

function callFromWire(call: PyValue): ToolCall | null {
  const target = member(call, "function");
  const [id, name, text] = [member(call, "id"), member(target, "name"), member(target, "arguments")];
  const args = typeof text === "string" ? readJsonOr(text, null) : null;
  if (typeof name !== "string" || !(args instanceof Dict)) return null;
  return { id: typeof id === "string" ? id : "", name, arguments: args, requestor: "assistant" };
}

function member(value: PyValue, key: string): PyValue {
  return value instanceof Dict ? (value.get(key) ?? null) : null;
}
