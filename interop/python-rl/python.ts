import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pythonRlPath } from "@aenv/testing";

/** The client's folder, for the PYTHONPATH of an interpreter in which it is not installed. */
export const clientPath = fileURLToPath(new URL("../../python", import.meta.url));

export interface PythonOptions {
  /** Another interpreter than the one of interop/python-rl. */
  readonly python?: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** Where it runs; the folder of the tests by default. */
  readonly cwd?: string;
}

/** Runs a script of this folder and returns the value that it prints as its last line. What it writes to stderr is in the error. */
// biome-ignore lint/suspicious/noExplicitAny: tests read reports of every shape
export async function runPython(script: string, args: readonly string[], options: PythonOptions = {}): Promise<any> {
  const { python = pythonRlPath, variables = {}, timeoutMs = 100_000, cwd } = options;
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...variables };
  const { stdout } = await promisify(execFile)(python, [join(import.meta.dirname, script), ...args], {
    env,
    timeout: timeoutMs,
    ...(cwd !== undefined && { cwd }),
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}
