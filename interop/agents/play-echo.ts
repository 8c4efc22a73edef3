import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const main = join(import.meta.dirname, "../../packages/aenv/src/main.ts");

/** Plays `aenv rollout echo` in a folder, and returns the path of its trajectories. */
export async function playEcho(folder: string, options: readonly string[]): Promise<string> {
  await promisify(execFile)(process.execPath, [main, "rollout", "echo", "--run", "played", ...options], { cwd: folder });
  return join(folder, "runs/played/trajectories.jsonl");
}
