import type { Trajectory } from "@aenv/contract";
import { trainingMessages, trainingTools } from "./chat-rows.ts";
import { conversationsOf } from "./conversations.ts";
import type { Row, Skipped } from "./row.ts";

/** Rows for supervised fine-tuning with TRL, axolotl and others: one a conversation. */
export function sftRows(trajectory: Trajectory): readonly Row[] | Skipped {
  // A JSON string is the one form of tools that every reader takes, and that no columnar format fills with nulls.
  const rows = conversationsOf(trajectory).map(({ messages, tools }) => ({
    messages: trainingMessages(messages, "object"),
    tools: JSON.stringify(trainingTools(tools)),
  }));
  return rows.length > 0 ? rows : "no agent message";
}

/** Rows in the format of OpenAI's fine-tuning, which others have kept. Messages that are only context have the weight 0. */
export function openaiRows(trajectory: Trajectory): readonly Row[] | Skipped {
  const rows = conversationsOf(trajectory).map(({ messages, tools, trained }) => ({
    messages: trainingMessages(messages, "string").map((message, at) =>
      message.role !== "assistant" || trained.has(at) ? message : { ...message, weight: 0 },
    ),
    tools: trainingTools(tools),
    parallel_tool_calls: true,
  }));
  return rows.length > 0 ? rows : "no agent message";
}
