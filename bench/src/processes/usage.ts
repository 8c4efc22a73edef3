import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";

export interface Memory {
  readonly residentBytes: number;
  readonly heapBytes: number;
}

/** The queries that a server process answers, besides its address. */
export function usageAnswers(url: string) {
  return { url: () => url, cpuUs, memory };
}

/** User and system time of this process. */
export function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Resident memory and heap size, after a garbage collection if the process was started with `--expose-gc`. */
async function memory(): Promise<Memory> {
  for (let time = 0; time < 3; time++) {
    globalThis.gc?.();
    await setImmediate();
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { residentBytes: rss, heapBytes: heapUsed };
}

/** Heap memory of each of this many objects while all of them are live; needs `--expose-gc`. */
export async function heldBytes(count: number, make: (n: number) => unknown): Promise<number> {
  // Warm-up: compiled code and caches are not counted.
  make(0);
  const before = await memory();
  const things = Array.from({ length: count }, (_, n) => make(n));
  const after = await memory();
  return (after.heapBytes - before.heapBytes) / things.length;
}

/** The peak of this process's resident memory so far, from /proc; Linux only. */
export function peakResidentBytes(): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) * 1024;
}

/** CPU time of any process, from /proc; Linux only. */
export async function foreignCpuUs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The second field, the command's name, may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return (ticks * 1_000_000) / TICKS_PER_SECOND;
}

// USER_HZ, which is 100 in all interfaces of Linux.
const TICKS_PER_SECOND = 100;

export async function foreignResidentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
