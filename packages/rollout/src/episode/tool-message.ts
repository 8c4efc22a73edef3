import type { ChatMessage, ContentBlock, EpisodeStatus } from "@aenv/contract";
import { modelText } from "@aenv/sdk/adapters";
import type { InstanceToolResult } from "../player/instance.ts";

/** The result of one tool call as a trajectory keeps it. */
export interface StepResult {
  readonly content: readonly ContentBlock[];
  readonly structured?: unknown;
  readonly isError: boolean;
  readonly status?: EpisodeStatus | undefined;
  /** True if the call was not sent to the environment. */
  readonly isSkipped: boolean;
}

export function toStepResult({ content, structuredContent, isError, status }: InstanceToolResult): StepResult {
  return { content, structured: structuredContent, isError, status, isSkipped: false };
}

/** The result of a call that was not sent, because the model got it wrong. */
export function failedResult(text: string): StepResult {
  return { content: [{ type: "text", text }], isError: true, isSkipped: true };
}

/** The message that answers a tool call. */
export function messageOfResult(callId: string, { content, structured, isError }: StepResult): ChatMessage {
  return { role: "tool", tool_call_id: callId, content: modelText({ content, structuredContent: structured, isError }) };
}
