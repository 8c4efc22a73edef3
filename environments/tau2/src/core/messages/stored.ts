import { any, bool, list, literal, nullable, text, withDefault } from "../../python/model/field-types.ts";
import { type Instance, model } from "../../python/model/model.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import type { Message, ToolCall, ToolMessage } from "./messages.ts";

const StoredToolCall = model("ToolCall", {
  id: withDefault(text, ""),
  name: text,
  arguments: any,
  requestor: withDefault(literal("user", "assistant"), "assistant"),
});

const StoredParticipant = model("ParticipantMessage", {
  role: literal("assistant", "user"),
  content: withDefault(nullable(text), null),
  tool_calls: withDefault(nullable(list(StoredToolCall)), null),
  timestamp: withDefault(nullable(text), null),
  turn_idx: withDefault(any, null),
});

const StoredTool = model("ToolMessage", {
  role: literal("tool"),
  id: text,
  content: withDefault(nullable(text), null),
  requestor: withDefault(literal("user", "assistant"), "assistant"),
  error: withDefault(bool, false),
  timestamp: withDefault(nullable(text), null),
  turn_idx: withDefault(any, null),
});

const StoredSystem = model("SystemMessage", { role: literal("system"), content: withDefault(nullable(text), null) });

/** Parses a message from a task or a trajectory. */
export function parseMessage(value: PyValue): Message {
  const role = value instanceof Dict ? value.get("role") : null;
  const parts = value instanceof Dict ? value.get("tool_messages") : null;
  if (role === "tool" && Array.isArray(parts)) return { role, tool_messages: parts.map((part) => toolMessage(StoredTool.validate(part))) };
  if (role === "tool") return toolMessage(StoredTool.validate(value));
  if (role === "system") return { role, content: StoredSystem.validate(value).content };
  const { role: speaker, content, tool_calls, timestamp, turn_idx } = StoredParticipant.validate(value);
  return { role: speaker, content, tool_calls: tool_calls?.map(toolCall) ?? null, timestamp, turn_idx: indexOf(turn_idx) };
}

function toolMessage({ id, content, requestor, error, timestamp, turn_idx }: Instance<typeof StoredTool>): ToolMessage {
  return { role: "tool", id, content, requestor, error, timestamp, turn_idx: indexOf(turn_idx) };
}

function toolCall({ id, name, arguments: args, requestor }: Instance<typeof StoredToolCall>): ToolCall {
  if (!(args instanceof Dict)) throw new Error(`the arguments of the stored call of '${name}' are not an object`);
  return { id, name, arguments: args, requestor };
}

const indexOf = (value: PyValue): number | null => (typeof value === "number" ? value : null);
