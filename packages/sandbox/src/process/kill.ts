import { setTimeout } from "node:timers/promises";
import { PlatformError } from "@aenv/contract";
import { killGroup, processesIn } from "./control-groups.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "./process-table.ts";
import { membersOf } from "./related-processes.ts";

export interface Doomed {
  readonly id: string;
  /** The program itself, which leads a process group and a session of its own; null if it is not known. */
  readonly leader: ProcessIdentity | null;
  /** What stands in the environment of its processes, unless they cleaned it; null if it is not known. */
  readonly marker: string | null;
  /** The file into which they print. */
  readonly log: string;
  /** The folder of its control group. */
  readonly group: string | null;
  /** Whether all its processes are in that group, so that no other way to find them is needed. */
  readonly isGrouped: boolean;
  /** Processes that were seen to belong to it. */
  readonly seen: readonly ProcessIdentity[];
}

/** A killed process that is still there after this long hangs in the system, and no signal reaches it. */
const STUCK_MS = 5_000;

/** Ends all processes of a sandbox: they are asked to, and after the grace they have to. Resolves when none is left. */
export async function killAll(doomed: Doomed, table: ProcessTable, graceMs: number): Promise<void> {
  const { id, leader } = doomed;
  // Before the program ends: only until then its children can be told by their parent.
  const known = await relativesOf(doomed, doomed.seen, table);
  if (leader !== null) {
    if (graceMs > 0 && isRunning(table, leader)) {
      signalGroup(table, leader, "SIGTERM");
      await untilGone(table, leader, graceMs);
    }
    signalGroup(table, leader, "SIGKILL");
    if (!(await untilGone(table, leader, STUCK_MS))) throw stuck(id, [leader.pid]);
  }
  await killRest(doomed, known, table);
}

/** Children may have left the process group of the program. */
async function killRest(doomed: Doomed, known: readonly ProcessIdentity[], table: ProcessTable): Promise<void> {
  const { id, leader, log, group } = doomed;
  const deadline = performance.now() + STUCK_MS;
  let seen = known;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    if (group !== null) killGroup(group);
    seen = await relativesOf(doomed, seen, table);
    const rest = new Set(seen.filter((one) => isRunning(table, one)).map(({ pid }) => pid));
    if (group !== null) for (const pid of processesIn(group)) rest.add(pid);
    // Whoever was to write the leader down died in the middle of starting it. Until the new process runs its program, it has the
    // environment of the old; but its log is open already.
    if (leader === null) for (const pid of await table.findWriters(log)) rest.add(pid);
    rest.delete(process.pid);
    if (rest.size === 0) return;
    if (performance.now() > deadline) throw stuck(id, [...rest]);
    for (const pid of rest) send(pid, "SIGKILL");
    await setTimeout(pauseMs);
  }
}

/** The processes of a sandbox that run now. */
export async function processesOf(doomed: Doomed, table: ProcessTable): Promise<number[]> {
  const others = (await relativesOf(doomed, doomed.seen, table)).map(({ pid }) => pid);
  return doomed.group === null ? others : [...new Set([...others, ...processesIn(doomed.group)])];
}

/** The processes of a sandbox that its control group does not know of. */
async function relativesOf(
  { leader, marker, isGrouped }: Doomed,
  known: readonly ProcessIdentity[],
  table: ProcessTable,
): Promise<readonly ProcessIdentity[]> {
  if (isGrouped) return [];
  const [marked, all] = await Promise.all([marker === null ? [] : table.findMarked(marker), table.list()]);
  return membersOf(all, { leader, known, marked });
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
  return new PlatformError(
    "sandbox.destroy_failed",
    `sandbox '${id}' does not end: process ${pids.join(", ")} is still there after SIGKILL`,
    {
      details: { pids },
    },
  );
}
