import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A process of this machine, from `/proc`. */
export interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  /** The process group. */
  readonly group: number;
  readonly session: number;
}

/** The bit of signal 2 in the masks of the kernel. */
const SIGINT_BIT = 0b10n;

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
  const [state, parent, group, session] = fields?.split(" ") ?? [];
  if (pid === undefined || state === undefined || state === "Z" || state === "X") return null;
  return { pid: Number(pid), parent: Number(parent), group: Number(group), session: Number(session) };
}

/** The children of a process. The kernel has a list of them, which is faster to read than all processes. */
export function childrenOf(pid: number): number[] {
  const listed = readOr(`/proc/${pid}/task/${pid}/children`, null);
  if (listed !== null) return listed.split(" ").filter(Boolean).map(Number);
  return listProcesses().flatMap((one) => (one.parent === pid ? [one.pid] : []));
}

/** The children of a process, their children, and so on. */
export function descendantsOf(pid: number, all: readonly RunningProcess[]): RunningProcess[] {
  const found = all.filter(({ parent }) => parent === pid);
  return found.flatMap((child) => [child, ...descendantsOf(child.pid, all)]);
}

/** Whether a process neither handles nor ignores SIGINT, so that it ends. */
export function endsAtInterrupt(pid: number): boolean {
  const text = readOr(`/proc/${pid}/status`, "");
  return ["SigIgn", "SigCgt"].every((name) => {
    const mask = new RegExp(`^${name}:\\s*([0-9a-f]+)`, "m").exec(text)?.[1] ?? "0";
    return (BigInt(`0x${mask}`) & SIGINT_BIT) === 0n;
  });
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

function readOr<T>(path: string, otherwise: T): string | T {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return otherwise;
  }
}
