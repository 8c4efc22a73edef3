import type { JsonObject } from "@aenv/contract";
import type { Artifact, Part } from "../definition/agent.ts";

/** States of a task, in the short names of A2A. */
export const taskStates = ["submitted", "working", "input-required", "completed", "failed", "canceled", "rejected"] as const;
export type TaskState = (typeof taskStates)[number];

/** What a caller sends. Without a task it begins one; without a context it begins a conversation. */
export interface IncomingMessage {
  readonly messageId: string;
  readonly parts: readonly Part[];
  readonly contextId?: string | undefined;
  readonly taskId?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly extensions?: readonly string[] | undefined;
  readonly referenceTaskIds?: readonly string[] | undefined;
}

export interface Message extends IncomingMessage {
  readonly role: "user" | "agent";
  readonly contextId: string;
}

export interface TaskStatus {
  readonly state: TaskState;
  readonly message: Message | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface StoredArtifact extends Artifact {
  readonly artifactId: string;
}

/** A task: one or more turns of the agent, until it is done. */
export interface ConversationTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  /** Grows with every status of any task: later changes have larger numbers. */
  readonly order: number;
  readonly artifacts: readonly StoredArtifact[];
  readonly history: readonly Message[];
}

export type TaskUpdate =
  | { readonly kind: "status"; readonly status: TaskStatus }
  | { readonly kind: "artifact"; readonly artifact: StoredArtifact; readonly append: boolean; readonly last: boolean };

/** No message can change the task any more. */
export function isEnded(state: TaskState): boolean {
  return state === "completed" || state === "failed" || state === "canceled" || state === "rejected";
}

/** The agent works on the task, or will. */
export function isRunning(state: TaskState): boolean {
  return state === "submitted" || state === "working";
}

/** The text parts of a message. */
export function partsText(parts: readonly Part[]): string {
  return parts.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
}
