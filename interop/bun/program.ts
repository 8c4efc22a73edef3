import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** Runs a program of this folder, and returns the JSON that it prints. */
export async function runProgram(bun: string, file: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)(bun, ["run", join(import.meta.dirname, file)], { timeout: 50_000 });
  return JSON.parse(stdout);
}
