import { createHash } from "node:crypto";
import {
  type ChatMessage,
  canonicalJson,
  chatMessage,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  type Json,
  type OracleAction,
  oracleAction,
  PlatformError,
} from "@aenv/contract";
import * as z from "zod";
import type { Reply, Status } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";

// What an environment may say about an episode, in the form in which the trainer API answers it.

/** The messages of a prompt; an observation that is no text is written as JSON. */
export function promptFrom(prompt: unknown): EpisodePrompt {
  if (prompt === null || prompt === undefined) return { messages: [] };
  if (!Array.isArray(prompt)) return { messages: [userMessage(prompt)] };
  return { messages: messagesFrom(prompt, "prompt") };
}

/** The prompt of an environment that defines none: its first observation, whatever its form. */
export function promptFromObservation(observation: Json): EpisodePrompt {
  return { messages: observation === null ? [] : [userMessage(observation)] };
}

export function replyFrom(reply: Reply | null | undefined): EpisodeReply {
  const { content, messages = [], done = false, reason } = reply ?? {};
  const said = content === undefined ? [] : [userMessage(content)];
  return { messages: [...said, ...messagesFrom(messages, "reply")], status: statusFrom({ done, ...(reason !== undefined && { reason }) }) };
}

export function statusFrom(status: Status): EpisodeStatus {
  if (typeof status === "boolean") return { done: status, reason: null };
  if (typeof status === "object" && status !== null && typeof status.done === "boolean")
    return { done: status.done, reason: status.reason ?? null };
  throw wrong("status", status, "true, false, or { done, reason }");
}

export function stepRewardFrom(value: unknown): { readonly reward: number; readonly components: Record<string, number> } {
  if (typeof value === "number" && Number.isFinite(value)) return { reward: value, components: {} };
  throw wrong("stepReward", value, "a finite number");
}

export function oracleFrom(actions: readonly OracleAction[] | null | undefined): { readonly actions: readonly OracleAction[] | null } {
  if (actions === null || actions === undefined) return { actions: null };
  const parsed = z.array(oracleAction).safeParse(jsonOrThrow("episode.failed", actions, "what oracle returned"));
  if (parsed.success) return { actions: parsed.data };
  throw wrong("oracle", actions, "a list of { tool, arguments } and { say }, or null");
}

/** The digest of a value that stands for the state. */
export function digestFrom(value: unknown): { readonly digest: string } {
  const json = canonicalJson(jsonOrThrow("episode.failed", value, "what digest returned"));
  return { digest: `sha256:${createHash("sha256").update(json).digest("hex")}` };
}

function userMessage(content: unknown): ChatMessage {
  return { role: "user", content: typeof content === "string" ? content : JSON.stringify(content) };
}

function messagesFrom(messages: readonly unknown[], part: string): ChatMessage[] {
  const parsed = z.array(chatMessage).safeParse(jsonOrThrow("episode.failed", messages, `what ${part} returned`));
  if (parsed.success) return parsed.data;
  throw wrong(part, messages, "a text, or messages with 'role' and 'content'");
}

function wrong(part: string, value: unknown, wanted: string): PlatformError {
  const shown = JSON.stringify(value) ?? String(value);
  return new PlatformError(
    "episode.failed",
    `'${part}' returned ${shown.length > 200 ? `${shown.slice(0, 197)}...` : shown}; it must return ${wanted}`,
  );
}
