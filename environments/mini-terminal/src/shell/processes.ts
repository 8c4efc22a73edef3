import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A process of this machine, from `/proc`. */
export interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  /** When it started, in clock ticks since the machine did. */
  readonly startTicks: number;
}

/** Linux reports times of processes in this unit, whatever the kernel's own clock is. */
const TICKS_PER_SECOND = 100;

/** All running processes; none on systems without `/proc`. */
export function listProcesses(): RunningProcess[] {
  const found: RunningProcess[] = [];
  for (const name of namesIn("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const one = parseStat(readOr(join("/proc", name, "stat"), ""));
    if (one !== null) found.push(one);
  }
  return found;
}

/** A line of `/proc/<pid>/stat`; null for a process that has ended. Its name, in parentheses, may contain anything. */
export function parseStat(line: string): RunningProcess | null {
  const [, pid, fields] = /^(\d+) \(.*\) (.+)$/s.exec(line) ?? [];
  const [state, parent, , session, ...rest] = fields?.split(" ") ?? [];
  if (pid === undefined || state === undefined || state === "Z" || state === "X") return null;
  return { pid: Number(pid), parent: Number(parent), session: Number(session), startTicks: Number(rest[15]) };
}

/** The time now, in the unit of `startTicks`. */
export function ticksNow(): number {
  return Math.floor(Number.parseFloat(readOr("/proc/uptime", "0")) * TICKS_PER_SECOND);
}

/** The children of a process, their children, and so on. */
export function descendantsOf(pid: number, all: readonly RunningProcess[]): RunningProcess[] {
  const found = all.filter(({ parent }) => parent === pid);
  return found.flatMap((child) => [child, ...descendantsOf(child.pid, all)]);
}

/** Whether a process was started with this variable in its environment. */
export function hasVariable(pid: number, variable: string): boolean {
  return readOr(`/proc/${pid}/environ`, "").split("\0").includes(variable);
}

/** Sends a signal; a negative pid is a process group. A process that has ended is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return otherwise;
  }
}
