import { setTimeout } from "node:timers/promises";
import { PlatformError } from "@aenv/contract";
import { isRunning, type ProcessIdentity, type ProcessTable } from "./process-table.ts";

export interface Doomed {
  readonly id: string;
  /** The program itself, which leads a process group of its own; null if it is not known. */
  readonly leader: ProcessIdentity | null;
  /** What stands in the environment of all its processes. */
  readonly marker: string;
  /** The file into which they print. */
  readonly log: string;
}

/** A killed process that is still there after this long hangs in the system, and no signal reaches it. */
const STUCK_MS = 5_000;

/** Ends all processes of a box: they are asked to, and after the grace they have to. Resolves when none is left. */
export async function killAll({ id, leader, marker, log }: Doomed, table: ProcessTable, graceMs: number): Promise<void> {
  if (leader !== null) {
    if (graceMs > 0 && isRunning(table, leader)) {
      signalGroup(table, leader, "SIGTERM");
      await untilGone(table, leader, graceMs);
    }
    signalGroup(table, leader, "SIGKILL");
    if (!(await untilGone(table, leader, STUCK_MS))) throw stuck(id, [leader.pid]);
  }
  // Children may have left the group, and only their environment still says whose they are.
  const deadline = performance.now() + STUCK_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    const strays = await table.findMarked(marker);
    // Whoever was to write the leader down died in the middle of starting it. Until the new process runs its program, it has the
    // environment of the old; but its log is open already.
    if (leader === null) strays.push(...(await table.findWriters(log)).filter((pid) => pid !== process.pid));
    if (strays.length === 0) return;
    if (performance.now() > deadline) throw stuck(id, strays);
    for (const pid of strays) send(pid, "SIGKILL");
    await setTimeout(pauseMs);
  }
}

/**
 * A number is given to a new process only when no process and no group uses it any more. So if the leader's number has
 * passed on, its group has ended; if it is merely gone, what is left of the group is still its own.
 */
export function signalGroup(table: ProcessTable, leader: ProcessIdentity, signal: NodeJS.Signals): void {
  const seen = table.look(leader.pid);
  if (seen === null || seen.start === leader.start) send(-leader.pid, signal);
}

async function untilGone(table: ProcessTable, leader: ProcessIdentity, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  for (let pauseMs = 1; isRunning(table, leader); pauseMs = Math.min(pauseMs * 2, 50)) {
    if (performance.now() > deadline) return false;
    await setTimeout(pauseMs);
  }
  return true;
}

function send(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    // Gone already; or, of a group, only zombies are left, which some systems refuse to signal.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function stuck(id: string, pids: readonly number[]): PlatformError {
  return new PlatformError("sandbox.destroy_failed", `box '${id}' does not end: process ${pids.join(", ")} is still there after SIGKILL`, {
    details: { pids },
  });
}
