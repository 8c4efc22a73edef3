import { existsSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { messageOf, PlatformError } from "@aenv/contract";
import { type DialTarget, dialTarget, readListeners } from "./listeners.ts";

/** How to find the processes of a sandbox: the program and its descendants, which is fast, then all others. */
export interface SandboxProcesses {
  readonly id: string;
  /** Null if the program has ended. */
  readonly pid: number | null;
  others(): Promise<readonly number[]>;
}

/** Whether this system reports which process listens on which port. */
export function canFindListeners(): boolean {
  return existsSync("/proc/net/tcp") && existsSync("/proc/self/fd");
}

/**
 * Connects to a port of this machine if a process of the sandbox listens there. All processes share the machine's ports, so the
 * listeners are checked before and after: the connection is closed unless they are the same.
 */
export async function connectPort(processes: SandboxProcesses, port: number, signal: AbortSignal): Promise<Socket> {
  const before = await dialTargetOf(port);
  if (before === null || !(await ownsAll(processes, before.inodes))) throw closed(processes.id, port);
  const socket = await open(before.host, port, signal).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : closed(processes.id, port, error);
  });
  const after = await dialTargetOf(port).catch(() => null);
  if (after?.host === before.host && after.inodes.join() === before.inodes.join()) return socket;
  socket.destroy();
  throw closed(processes.id, port);
}

/** The loopback address at which processes of the sandbox listen on a port; null if none does, or if others do as well. */
export async function findListener(processes: SandboxProcesses, port: number): Promise<DialTarget["host"] | null> {
  const target = await dialTargetOf(port);
  return target !== null && (await ownsAll(processes, target.inodes)) ? target.host : null;
}

async function dialTargetOf(port: number): Promise<DialTarget | null> {
  // Without IPv6 the second table is missing.
  const tables = await Promise.all([readFile("/proc/net/tcp", "latin1"), readFile("/proc/net/tcp6", "latin1").catch(() => "")]);
  return dialTarget(tables.flatMap((table) => readListeners(table, port)));
}

/** Whether each of the sockets is open in some process of the sandbox. */
async function ownsAll(processes: SandboxProcesses, inodes: readonly string[]): Promise<boolean> {
  if (processes.pid === null) return false;
  const missing = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for await (const pid of processTree(processes.pid)) {
    await removeOpenSockets(missing, pid);
    if (missing.size === 0) return true;
  }
  for (const pid of await processes.others()) await removeOpenSockets(missing, pid);
  return missing.size === 0;
}

async function* processTree(pid: number): AsyncGenerator<number> {
  yield pid;
  // The kernel lists a child under the thread that started it.
  for (const thread of await list(`/proc/${pid}/task`)) {
    const children = await readFile(`/proc/${pid}/task/${thread}/children`, "latin1").catch(() => "");
    for (const child of children.split(" ")) if (child !== "") yield* processTree(Number(child));
  }
}

async function removeOpenSockets(missing: Set<string>, pid: number): Promise<void> {
  const links = await list(`/proc/${pid}/fd`);
  for (const link of links) missing.delete(await readlink(`/proc/${pid}/fd/${link}`).catch(() => ""));
}

/** Empty if the process has ended or may not be read. */
function list(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const abort = () => void socket.destroy(signal.reason);
    const settle = () => signal.removeEventListener("abort", abort);
    socket.once("connect", () => {
      settle();
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", reject).once("close", settle);
    signal.addEventListener("abort", abort);
    if (signal.aborted) abort();
  });
}

function closed(id: string, port: number, cause?: unknown): PlatformError {
  const why = cause === undefined ? "" : `: ${messageOf(cause)}`;
  return new PlatformError("sandbox.port_closed", `no process of sandbox '${id}' listens on port ${port} of loopback${why}`, { cause });
}
