import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Failure } from "../terminal/failure.ts";

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 16 * 1_024 ** 2;
const TIMEOUT_MS = 10 * 60_000;

export interface ProgramRun {
  /** What it does, for its failure. */
  readonly what: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Runs a program of this machine to its end; its failure is explained with the end of its output. */
export async function runProgram(program: string, args: readonly string[], { what, cwd, env, signal }: ProgramRun): Promise<string> {
  try {
    const { stdout } = await run(program, [...args], { cwd, env: { ...env }, signal, maxBuffer: MAX_OUTPUT_BYTES, timeout: TIMEOUT_MS });
    return stdout;
  } catch (error) {
    signal.throwIfAborted();
    const { code, stdout = "", stderr = "" } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (code === "ENOENT")
      throw new Failure(`${what} needs ${program}, which is not on the PATH`, { hint: `Install ${program}.`, cause: error });
    const output = `${stdout}\n${stderr}`.trim().split("\n").slice(-12).join("\n");
    throw new Failure(`${what} failed:\n${output}`, { cause: error });
  }
}
