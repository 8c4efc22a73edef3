import type { CallToolResult, Json, JsonObject, ToolDescriptor } from "@aenv/contract";
import type { CallContext, EpisodeContext } from "./context.ts";

// An agent as a part of an environment: it answers messages, and its conversations belong to the episode's state.

interface PartInfo {
  readonly mediaType?: string;
  readonly filename?: string;
  readonly metadata?: JsonObject;
}

export interface TextPart extends PartInfo {
  readonly text: string;
}

/** A file's bytes, as base64. */
export interface RawPart extends PartInfo {
  readonly raw: string;
}

/** A file at an address. */
export interface UrlPart extends PartInfo {
  readonly url: string;
}

export interface DataPart extends PartInfo {
  readonly data: Json;
}

/** A part of a message or of an artifact. */
export type Part = TextPart | RawPart | UrlPart | DataPart;

/** A result of a task. */
export interface Artifact {
  /** Unique in its task; the next number, if not given. */
  readonly artifactId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
}

/** What an agent says and makes during a turn. What it throws ends its task as failed. */
export type AgentEvent =
  /** `question`: the task needs input. `answer`: it is completed. `refusal`: it is rejected. `message`: it goes on. */
  | { readonly kind: "message" | "question" | "answer" | "refusal"; readonly parts: readonly Part[] }
  /** `append` adds to the artifact with the same id; `last` says that nothing will be added. */
  | { readonly kind: "artifact"; readonly artifact: Artifact; readonly append?: boolean; readonly last?: boolean };

/** The message that a turn answers. */
export interface ReceivedMessage {
  /** The sender's. */
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
}

/** The environment's own tools, for its agent. */
export interface AgentTools {
  list(): readonly ToolDescriptor[];
  /** A failure inside the tool is a result with `isError`. */
  call(name: string, input?: unknown): Promise<CallToolResult>;
}

export interface AgentContext<State = unknown> extends CallContext<State> {
  readonly message: ReceivedMessage;
  readonly tools: AgentTools;
}

/**
 * An agent. Its memory of a conversation is plain data, which the kit keeps with the episode's state. A turn gets a copy: what it changes
 * counts when it has ended without an exception.
 */
export interface AgentPart<Memory = unknown> {
  /** Why conversations with it can be neither stored nor forked, if they cannot: a part of its memory is elsewhere. */
  readonly notStored?: string;
  /** The memory of a new conversation. */
  begin(context: EpisodeContext): Memory | Promise<Memory>;
  /** Answers a message. The turns of one conversation run one after the other. */
  turn(input: readonly Part[], memory: Memory, context: AgentContext): AsyncIterable<AgentEvent>;
  /** Answers a message without a task and without the memory; null to begin a task. `messageId` is the sender's. */
  directAnswer?(input: readonly Part[], messageId: string): readonly Part[] | null | Promise<readonly Part[] | null>;
}

/** What an agent can do, as its card lists it. */
export interface AgentSkill {
  readonly id: string;
  /** Its id, if not given. */
  readonly name?: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly examples?: readonly string[];
}
