import type { Trajectory } from "@aenv/contract";
import type { Row, Skipped } from "./row.ts";
import { sftRows } from "./sft.ts";

/**
 * Rows for LLaMA-Factory. It silently empties a row whose turns do not alternate between what the agent is told and what it says, so
 * such rows are left out here, where they are counted.
 */
export function llamaFactoryRows(trajectory: Trajectory): readonly Row[] | Skipped {
  const rows = sftRows(trajectory);
  if (typeof rows === "string") return rows;
  const fit = rows.filter(({ messages }) => alternates((messages as { role: string }[]).map(({ role }) => role)));
  return fit.length > 0 ? fit : "turns do not alternate";
}

/** The results of several calls count as one turn. */
function alternates(roles: readonly string[]): boolean {
  const turns = (roles[0] === "system" ? roles.slice(1) : roles).filter((role, at, all) => role !== "tool" || all[at - 1] !== "tool");
  return (
    turns.length > 0 && turns.length % 2 === 0 && turns.every((role, at) => (role === "assistant") === (at % 2 === 1) && role !== "system")
  );
}

/** The entry of a file in `dataset_info.json`, by which LLaMA-Factory finds and reads it. */
export function datasetInfo(fileName: string): Row {
  return {
    file_name: fileName,
    formatting: "openai",
    columns: { messages: "messages", tools: "tools" },
    tags: {
      role_tag: "role",
      content_tag: "content",
      user_tag: "user",
      assistant_tag: "assistant",
      observation_tag: "tool",
      function_tag: "function",
      system_tag: "system",
    },
  };
}
