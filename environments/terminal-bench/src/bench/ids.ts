import { createHash } from "node:crypto";
import type { BenchRun } from "@aenv/kit";
import { trialName } from "../results/names.ts";
import type { Task } from "../task/model.ts";

// Names and ids follow from the run, so that a run that goes on writes to the same folders.

export function nameOf(task: Task, run: BenchRun, taskId: string, sample: number): string {
  return trialName(task.shortName, randomOf(`${run.id} ${taskId} ${sample}`));
}

export function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The same numbers for the same text. */
function randomOf(text: string): () => number {
  const bytes = createHash("sha256").update(text).digest();
  let at = 0;
  return () => (bytes[at++ % bytes.length] ?? 0) / 256;
}
