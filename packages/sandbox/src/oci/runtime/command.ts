import { spawn } from "node:child_process";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { PlatformError } from "@aenv/contract";

/** Where programs of the machine are looked up. No other variable of this process, which may be a secret, reaches a runtime. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface RuntimeCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** What was being done, for the error: "sandbox s1 could not be started". */
  readonly problem: string;
  /** The file to which the program writes its errors. */
  readonly errorsPath: string;
  /** Standard output and error of the program and of what it starts. */
  readonly logPath?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Runs the program of a runtime to its end. Nothing of it is read through a pipe: a detached sandbox inherits the pipe and keeps it open.
 * Throws `sandbox.start_failed` with the last error that the program wrote.
 */
export async function runCommand({ program, args, problem, errorsPath, logPath, timeoutMs, signal }: RuntimeCommand): Promise<void> {
  signal?.throwIfAborted();
  const log: FileHandle | null = logPath === undefined ? null : await open(logPath, "a", 0o600);
  try {
    const output = log?.fd ?? "ignore";
    const child = spawn(program, args, { stdio: ["ignore", output, output], env: { PATH: SYSTEM_PATH }, cwd: "/" });
    const limit = signal === undefined ? AbortSignal.timeout(timeoutMs) : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const kill = () => child.kill("SIGKILL");
    limit.addEventListener("abort", kill);
    const ending = await new Promise<number | Error | null>((resolve) => {
      child.once("error", resolve);
      child.once("exit", resolve);
      if (limit.aborted) kill();
    });
    limit.removeEventListener("abort", kill);
    if (ending === 0) return;
    signal?.throwIfAborted();
    const why = ending instanceof Error ? ending.message : limit.aborted ? `no answer within ${timeoutMs / 1_000} seconds` : null;
    throw new PlatformError("sandbox.start_failed", `${problem}: ${why ?? (await lastError(errorsPath)) ?? `${program} failed`}`);
  } finally {
    await log?.close();
  }
}

/** Both runtimes write one JSON object per line. */
async function lastError(path: string): Promise<string | null> {
  const lines = (await readFile(path, "utf8").catch(() => "")).trim().split("\n");
  for (const line of lines.toReversed()) {
    try {
      const { msg, level } = JSON.parse(line) as { msg?: unknown; level?: unknown };
      if (typeof msg === "string" && (level === "error" || level === "fatal" || level === "warning")) return msg;
    } catch {}
  }
  return null;
}
