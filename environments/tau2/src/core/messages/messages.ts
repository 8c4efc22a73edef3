import { isBlank } from "@aenv/benchmark";
import { writeJson } from "../../python/json/writer.ts";
import { Dict } from "../../python/values/values.ts";
import type { ActionCall } from "./action.ts";

export type { Requestor } from "./action.ts";
export type ToolCall = ActionCall;

/** A call by the agent. */
export function agentCall(name: string, args: Dict = new Dict()): ToolCall {
  return { id: "", name, arguments: args, requestor: "assistant" };
}

export interface SystemMessage {
  readonly role: "system";
  readonly content: string | null;
}

/** A message of the agent or the user. It is a tool call if `tool_calls` is not null, even if the list is empty. */
export interface ParticipantMessage {
  readonly role: "assistant" | "user";
  readonly content: string | null;
  readonly tool_calls: readonly ToolCall[] | null;
  readonly timestamp?: string | null;
  readonly turn_idx?: number | null;
}

export interface ToolMessage {
  readonly role: "tool";
  readonly id: string;
  readonly content: string | null;
  readonly requestor: "assistant" | "user";
  readonly error: boolean;
  readonly timestamp?: string | null;
  readonly turn_idx?: number | null;
}

/** Several results for one participant; never part of a trajectory. */
export interface MultiToolMessage {
  readonly role: "tool";
  readonly tool_messages: readonly ToolMessage[];
}

/** Field names are those of stored trajectories. */
export type Message = SystemMessage | ParticipantMessage | ToolMessage | MultiToolMessage;

export function isParticipant(message: Message): message is ParticipantMessage {
  return message.role === "assistant" || message.role === "user";
}

export function isToolMessage(message: Message): message is ToolMessage {
  return message.role === "tool" && !("tool_messages" in message);
}

/** The content, or null if it is blank. */
export function textOf(message: ParticipantMessage): string | null {
  return message.content === null || isBlank(message.content) ? null : message.content;
}

/** The name of the message's class in the reference. */
export function className(message: Message): string {
  if (message.role === "tool") return isToolMessage(message) ? "ToolMessage" : "MultiToolMessage";
  return { system: "SystemMessage", assistant: "AssistantMessage", user: "UserMessage" }[message.role];
}

export function printToolCall(call: ToolCall): string {
  const lines = [`ToolCall (from ${call.requestor})`];
  if (call.id !== "") lines.push(`id: ${call.id}`);
  lines.push(`name: ${call.name}`, "arguments:", writeJson(call.arguments, { indent: 2 }));
  return lines.join("\n");
}

export function printToolMessage(message: ToolMessage): string {
  const lines = [`ToolMessage (responding to ${message.requestor})`];
  if (message.turn_idx != null) lines.push(`turn_idx: ${message.turn_idx}`);
  if (message.timestamp != null) lines.push(`timestamp: ${message.timestamp}`);
  if (message.content !== null) lines.push(`content: ${message.content}`);
  if (message.error) lines.push("Error");
  return lines.join("\n");
}
