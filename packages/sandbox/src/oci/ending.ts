import type { CommandEnding } from "@aenv/contract";
import { describeExit } from "../host/exit-reason.ts";
import type { KnownLimits } from "../spec/limits.ts";
import type { GroupUsage } from "./cgroups/group.ts";

/** What is known when a sandbox has ended. */
export interface EndingFacts {
  /** How the main program ended; null if the whole sandbox ended with it, or there was no program. */
  readonly ending: CommandEnding | null;
  /** Whether the process that serves the files of the sandbox ended first. */
  readonly hasLostFiles: boolean;
  readonly usage: GroupUsage;
  /** The last lines that the program printed, oldest first. */
  readonly lines: readonly string[];
  readonly limits: KnownLimits;
}

/** The kernel measures the time of a control group exactly, and that of a process by samples, which differ on a busy machine. */
const CPU_TOLERANCE = 0.5;

/** A sentence that says why a sandbox ended. */
export function describeEnding(facts: EndingFacts): string {
  const { ending, usage, limits } = facts;
  const { memoryMb, cpuSeconds } = limits;
  if (ending?.outOfMemory || (wasKilled(ending) && (usage.outOfMemoryKills ?? 0) > 0))
    return `the program ran out of memory${limit(memoryMb, " MB")}`;
  if (wasKilled(ending) && cpuSeconds != null && (usage.cpuMs ?? 0) >= cpuSeconds * 1_000 * CPU_TOLERANCE)
    return `the program has used up its CPU time limit${limit(cpuSeconds, " seconds")}`;
  return withProcessLimit(facts, causeOf(facts));
}

function causeOf({ ending, hasLostFiles, lines, limits }: EndingFacts): string {
  if (hasLostFiles) return "the process that serves the files of the sandbox (runsc-gofer) was killed";
  if (ending === null) return "the sandbox was killed";
  const exit = { code: ending.exitCode, signal: ending.signal as NodeJS.Signals | null };
  return describeExit({ exit, lines, memoryMb: limits.memoryMb ?? null });
}

/** A program that cannot start another one often fails with a message that does not mention the limit. */
function withProcessLimit({ usage, limits }: EndingFacts, cause: string): string {
  if ((usage.processLimitHits ?? 0) === 0) return cause;
  return `${cause}; it reached the limit of processes and threads${limit(limits.processes, "")}`;
}

/** Whether the system killed it: with SIGKILL, or together with the whole sandbox. */
function wasKilled(ending: CommandEnding | null): boolean {
  return ending === null || ending.signal === "SIGKILL" || ending.signal === "SIGXCPU";
}

function limit(value: number | null | undefined, unit: string): string {
  return value == null ? "" : ` (its limit is ${value}${unit})`;
}
