import { type Trajectory, textOf } from "@aenv/contract";
import type { Row } from "./row.ts";

/** The trainers that play episodes themselves and are given a file of tasks. */
export type PromptFormat = "verl" | "slime" | "areal" | "trl";

/** The name of the agent loop in verl's configuration. */
const VERL_AGENT = "aenv";

/** One row for the task of a trajectory: where its environment is, and what an agent is told at the beginning. */
export function promptRow(trajectory: Trajectory, format: PromptFormat): Row {
  const { task, provenance } = trajectory;
  const prompt = promptOf(trajectory);
  const named = { environment: provenance.environment, task: task.id };
  switch (format) {
    case "verl":
      return {
        data_source: provenance.environment,
        prompt,
        ability: "agent",
        // verl wants the column; the environment scores, so there is no answer to compare with.
        reward_model: { style: "environment", ground_truth: "" },
        extra_info: { split: task.split ?? "", index: task.index ?? 0, ...named },
        agent_name: VERL_AGENT,
      };
    case "slime":
      return { prompt: prompt.map(({ content }) => content).join("\n\n"), label: "", metadata: named };
    case "areal":
      return { ...named, messages: prompt };
    case "trl":
      // Its environment class appends what the environment says first to the last message.
      return { prompt: [...prompt.filter(({ role }) => role === "system"), { role: "user", content: "" }], ...named };
  }
}

/** What the environment says before the agent acts. */
function promptOf({ messages }: Trajectory): { readonly role: string; readonly content: string }[] {
  const end = messages.findIndex(({ role }) => role === "assistant" || role === "tool");
  return messages.slice(0, end < 0 ? messages.length : end).map((message) => ({ role: message.role, content: textOf(message) }));
}
