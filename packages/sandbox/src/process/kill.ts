import { setTimeout } from "node:timers/promises";
import { PlatformError } from "@aenv/contract";
import { killGroup, processesIn } from "../host/control-groups.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { relatedProcesses } from "./related-processes.ts";

export interface KillTarget {
  readonly id: string;
  /** The program, which leads its own process group and session; null if it is not known. */
  readonly leader: ProcessIdentity | null;
  /** The entry in the environment of its processes, unless they cleared it; null if it is not known. */
  readonly marker: string | null;
  /** The log file to which they print. */
  readonly log: string;
  /** The folder of its control group. */
  readonly group: string | null;
  /** Whether all its processes are in that group, so that no other search is needed. */
  readonly isGrouped: boolean;
  /** Processes that were found to belong to it earlier. */
  readonly known: readonly ProcessIdentity[];
}

/**
 * A process that still exists this long after SIGKILL hangs in the kernel. It needs processor time to end, and its priority is low: on a
 * busy machine that takes seconds.
 */
const STUCK_MS = 30_000;

/** Ends all processes of a sandbox: SIGTERM, and SIGKILL after the grace period. Resolves when none is left. */
export async function killAll(target: KillTarget, table: ProcessTable, graceMs: number): Promise<void> {
  const { id, leader } = target;
  // Searched before the program ends: afterwards its children no longer have it as their parent.
  const known = await ungroupedProcesses(target, target.known, table);
  if (leader !== null) {
    if (graceMs > 0 && isRunning(table, leader)) {
      signalGroup(table, leader, "SIGTERM");
      await waitUntilEnded(table, leader, graceMs);
    }
    signalGroup(table, leader, "SIGKILL");
    if (!(await waitUntilEnded(table, leader, STUCK_MS))) throw stuck(id, [leader.pid]);
  }
  await killRest(target, known, table);
}

/** Kills processes that left the process group of the program. */
async function killRest(target: KillTarget, known: readonly ProcessIdentity[], table: ProcessTable): Promise<void> {
  const { id, leader, log, group } = target;
  const deadline = performance.now() + STUCK_MS;
  let found = known;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    if (group !== null) await killGroup(group);
    found = await ungroupedProcesses(target, found, table);
    const rest = new Set(found.filter((one) => isRunning(table, one)).map(({ pid }) => pid));
    if (group !== null) for (const pid of processesIn(group)) rest.add(pid);
    // Without a leader, the server died between starting the program and writing its pid. Until exec, the new process has the
    // server's environment and so no marker, but its log file is open already.
    if (leader === null) for (const pid of await table.findWriters(log)) rest.add(pid);
    rest.delete(process.pid);
    if (rest.size === 0) return;
    if (performance.now() > deadline) throw stuck(id, [...rest]);
    for (const pid of rest) send(pid, "SIGKILL");
    await setTimeout(pauseMs);
  }
}

/** The processes of a sandbox that are running. */
export async function processesOf(target: KillTarget, table: ProcessTable): Promise<number[]> {
  const others = (await ungroupedProcesses(target, target.known, table)).map(({ pid }) => pid);
  return target.group === null ? others : [...new Set([...others, ...processesIn(target.group)])];
}

/** The processes of a sandbox that are not in its control group. */
async function ungroupedProcesses(
  { leader, marker, isGrouped }: KillTarget,
  known: readonly ProcessIdentity[],
  table: ProcessTable,
): Promise<readonly ProcessIdentity[]> {
  if (isGrouped) return [];
  const [marked, all] = await Promise.all([marker === null ? [] : table.findMarked(marker), table.list()]);
  return relatedProcesses(all, { leader, known, marked });
}

/**
 * Signals the leader's process group. The system reuses a pid only when no process and no group has it. So if another process has
 * the leader's pid, the group has ended; if none has it, the remaining processes of the group are still the leader's.
 */
export function signalGroup(table: ProcessTable, leader: ProcessIdentity, signal: NodeJS.Signals): void {
  const found = table.find(leader.pid);
  if (found === null || found.start === leader.start) send(-leader.pid, signal);
}

async function waitUntilEnded(table: ProcessTable, leader: ProcessIdentity, limitMs: number): Promise<boolean> {
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
    // The target has ended; or only zombies are left in the group, which some systems refuse to signal.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function stuck(id: string, pids: readonly number[]): PlatformError {
  return new PlatformError("sandbox.destroy_failed", `sandbox '${id}' did not end: process ${pids.join(", ")} still exists after SIGKILL`, {
    details: { pids },
  });
}
