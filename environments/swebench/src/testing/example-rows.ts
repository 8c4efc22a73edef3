import { fileURLToPath } from "node:url";
import { loadDataset } from "../dataset/load.ts";

/** A task repository in the style of SWE-bench. */
export const examples = fileURLToPath(new URL("../../examples", import.meta.url));

/** The rows of its tasks, as they are in `rows.jsonl`. */
export async function exampleRows(): Promise<string> {
  const rows = await loadDataset(examples);
  return rows.map((row) => `${JSON.stringify(Object.fromEntries(row))}\n`).join("");
}
