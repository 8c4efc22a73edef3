import { createHash } from "node:crypto";
import { inspect } from "node:util";
import {
  type ChatMessage,
  canonicalJson,
  chatMessage,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  episodeStatus,
  isObject,
  type Json,
  type OracleAction,
  oracleAction,
  PlatformError,
} from "@aenv/contract";
import * as z from "zod";
import { jsonOrThrow } from "../json/to-json.ts";

// What an environment may say about an episode, in the form in which the trainer API answers it.

/** The messages of a prompt; a text is the user's message. */
export function promptFrom(prompt: unknown): EpisodePrompt {
  if (typeof prompt === "string") return { messages: [userMessage(prompt)] };
  return { messages: messagesFrom(prompt, "prompt", "a text, or a list of messages with 'role' and 'content'") };
}

/** The prompt of an environment that defines none: its first observation; one that is no text is written as JSON. */
export function promptFromObservation(observation: Json): EpisodePrompt {
  if (observation === null) return { messages: [] };
  return { messages: [userMessage(typeof observation === "string" ? observation : JSON.stringify(observation))] };
}

const REPLY = "{ content, messages, done, reason }, where 'content' is a text and 'messages' are messages with 'role' and 'content'";

export function replyFrom(reply: unknown): EpisodeReply {
  if (!isObject(reply)) throw wrong("reply", reply, REPLY);
  const { content, messages = [], done = false, reason } = reply;
  if (content !== undefined && typeof content !== "string") throw wrong("reply", reply, REPLY);
  const status = statusIn({ done, reason });
  if (status === null) throw wrong("reply", reply, REPLY);
  const said = content === undefined ? [] : [userMessage(content)];
  return { messages: [...said, ...messagesFrom(messages, "reply", REPLY)], status };
}

export function statusFrom(status: unknown): EpisodeStatus {
  const parsed = typeof status === "boolean" ? statusIn({ done: status }) : statusIn(status);
  if (parsed === null) throw wrong("status", status, "true, false, or { done, reason }, where 'reason' is a text");
  return parsed;
}

function statusIn(value: unknown): EpisodeStatus | null {
  if (!isObject(value)) return null;
  const { success, data } = episodeStatus.safeParse({ done: value.done, reason: value.reason ?? null });
  return success ? data : null;
}

export function stepRewardFrom(value: unknown): { readonly reward: number; readonly components: Record<string, number> } {
  if (typeof value === "number" && Number.isFinite(value)) return { reward: value, components: {} };
  throw wrong("stepReward", value, "a finite number");
}

export function oracleFrom(actions: unknown): { readonly actions: readonly OracleAction[] | null } {
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

function userMessage(content: string): ChatMessage {
  return { role: "user", content };
}

function messagesFrom(messages: unknown, part: string, wanted: string): ChatMessage[] {
  const parsed = z.array(chatMessage).safeParse(jsonOrThrow("episode.failed", messages ?? null, `what ${part} returned`));
  if (parsed.success) return parsed.data;
  throw wrong(part, messages, wanted);
}

function wrong(part: string, value: unknown, wanted: string): PlatformError {
  const shown = inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 4 });
  return new PlatformError(
    "episode.failed",
    `'${part}' returned ${shown.length > 200 ? `${shown.slice(0, 197)}...` : shown}; it must return ${wanted}`,
  );
}
