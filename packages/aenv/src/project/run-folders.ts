import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Whether a folder holds a run of `aenv rollout`, complete or being played. */
export function isRun(folder: string): boolean {
  const has = (name: string) => existsSync(join(folder, name));
  return has("run.json") && (has("lock") || has("summary.json"));
}

/** Whether a folder is one in which `aenv rollout` keeps its runs. */
export function hasRuns(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => isRun(join(folder, name)));
  } catch {
    // It is a file, or was deleted.
    return false;
  }
}
