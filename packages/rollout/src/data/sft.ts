import type { Trajectory } from "@aenv/contract";
import { hasAgentMessage, trainingMessages, trainingTools } from "./chat-rows.ts";

/** One row for supervised fine-tuning with TRL, LLaMA-Factory, axolotl and others; null if the agent wrote nothing. */
export function sftRow(trajectory: Trajectory): Record<string, unknown> | null {
  if (!hasAgentMessage(trajectory)) return null;
  // A JSON string is the one form of tools that every reader takes, and that no columnar format fills with nulls.
  return { messages: trainingMessages(trajectory.messages, "object"), tools: JSON.stringify(trainingTools(trajectory.tools)) };
}

/** One row in the format of OpenAI's fine-tuning, which others have kept. */
export function openaiRow(trajectory: Trajectory): Record<string, unknown> | null {
  if (!hasAgentMessage(trajectory)) return null;
  return { messages: trainingMessages(trajectory.messages, "string"), tools: trainingTools(trajectory.tools), parallel_tool_calls: true };
}
