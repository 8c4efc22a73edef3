import { join } from "node:path";
import { parseBoundedJson } from "@aenv/kit";
import { type AtifTrajectory, parseTrajectory } from "../atif/trajectory.ts";
import { isFile, readText } from "./files.ts";

/** What the agent of a task has done before, or why that cannot be read. */
export type PriorContext = { readonly trajectory: AtifTrajectory } | { readonly problem: string };

/** The `trajectory.json` beside the instruction; null without one. */
export async function loadPriorContext(folder: string): Promise<PriorContext | null> {
  const path = join(folder, "trajectory.json");
  if (!(await isFile(path))) return null;
  try {
    return { trajectory: parseTrajectory(parseBoundedJson(await readText(path))) };
  } catch (error) {
    return { problem: `its trajectory.json is no trajectory of an agent: ${(error as Error).message}` };
  }
}
