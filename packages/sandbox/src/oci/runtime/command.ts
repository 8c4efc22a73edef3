import { readFile } from "node:fs/promises";
import { PlatformError, TimedSignal } from "@aenv/contract";
import { launch } from "../../host/launcher.ts";
import type { LaunchOptions } from "../../init/connection.ts";

export interface RuntimeCommand {
  readonly argv: readonly string[];
  /** What was being done, for the error: "sandbox s1 could not be started". */
  readonly problem: string;
  /** The file to which the program writes its errors. */
  readonly errorsPath: string;
  /** Standard output and error of the program and of what it starts. */
  readonly logPath?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly launching?: LaunchOptions;
  /** See `Launch`. */
  readonly mark?: string;
}

/**
 * Runs the program of a runtime to its end. Nothing of it is read through a pipe: a detached sandbox inherits the pipe and keeps it open.
 * Throws `sandbox.start_failed` with the last error that the program wrote.
 */
export async function runCommand({
  argv,
  problem,
  errorsPath,
  logPath,
  timeoutMs,
  signal,
  launching,
  mark,
}: RuntimeCommand): Promise<void> {
  signal?.throwIfAborted();
  using limit = new TimedSignal(timeoutMs, signal);
  const started = launch({ argv, outputPath: logPath ?? "/dev/null", signal: limit.signal, options: launching, mark });
  const ending = await started.catch((error: Error) => error);
  if (!(ending instanceof Error) && ending.exitCode === 0) return;
  signal?.throwIfAborted();
  const why = ending instanceof Error ? ending.message : limit.isOver ? `no answer within ${timeoutMs / 1_000} seconds` : null;
  const printed = logPath === undefined ? null : await lastLine(logPath);
  throw new PlatformError("sandbox.start_failed", `${problem}: ${why ?? (await lastError(errorsPath)) ?? printed ?? `${argv[0]} failed`}`);
}

async function lastLine(path: string): Promise<string | null> {
  const lines = (await readFile(path, "utf8").catch(() => "")).trim().split("\n");
  return lines.at(-1) || null;
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
