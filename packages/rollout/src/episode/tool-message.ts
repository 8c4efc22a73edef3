import { type ChatMessage, type ContentBlock, type EpisodeStatus, isObject } from "@aenv/contract";
import type { InstanceToolResult } from "./instance.ts";

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
export function messageOfResult(callId: string, result: StepResult): ChatMessage {
  const text = result.content.map(textOfBlock).join("\n");
  const content = result.isError ? `Error: ${text || "the tool failed and gave no reason"}` : text;
  return { role: "tool", tool_call_id: callId, content };
}

/** The arguments as the model wrote them; some models write nothing where there are none. */
export function parseArguments(
  text: string,
): { readonly ok: true; readonly value: Record<string, unknown> } | { readonly ok: false; readonly message: string } {
  if (text.trim() === "") return { ok: true, value: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return { ok: true, value };
  } catch {
    return { ok: false, message: `the arguments are not valid JSON: ${preview(text)}` };
  }
  return { ok: false, message: `the arguments must be a JSON object, not ${preview(text)}` };
}

function textOfBlock(block: ContentBlock): string {
  const { type, text, data, mimeType, resource, uri } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource" && isObject(resource) && typeof resource.text === "string") return resource.text;
  if (type === "resource_link" && typeof uri === "string") return uri;
  // Base64 in a text costs thousands of tokens and tells the model nothing.
  if (typeof data === "string") return `[${type} ${String(mimeType ?? "of unknown type")}, left out: text only]`;
  return JSON.stringify(block);
}

function preview(text: string): string {
  return text.length > 200 ? `${text.slice(0, 197)}...` : text;
}
