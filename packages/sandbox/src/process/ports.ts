import { existsSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { messageOf, PlatformError } from "@aenv/contract";
import { type Dialling, dialling, readListeners } from "./listeners.ts";

/** The processes of a sandbox: the program and its descendants first, which are found quickly, then all others. */
export interface SandboxProcesses {
  readonly id: string;
  /** Null if the program has ended. */
  readonly pid: number | null;
  others(): Promise<readonly number[]>;
}

/** Whether this system tells which process listens on which port. */
export function tellsListeners(): boolean {
  return existsSync("/proc/net/tcp") && existsSync("/proc/self/fd");
}

/**
 * Connects to a port of this machine if a process of the sandbox listens there. Processes share the machine's ports, so what is
 * dialled is checked before and after: a listener that changed hands in between is not spoken to.
 */
export async function connectPort(processes: SandboxProcesses, port: number, signal: AbortSignal): Promise<Socket> {
  const before = await diallingOf(port);
  if (before === null || !(await holdsAll(processes, before.inodes))) throw closed(processes.id, port);
  const socket = await open(before.host, port, signal).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : closed(processes.id, port, error);
  });
  const after = await diallingOf(port).catch(() => null);
  if (after?.host === before.host && after.inodes.join() === before.inodes.join()) return socket;
  socket.destroy();
  throw closed(processes.id, port);
}

async function diallingOf(port: number): Promise<Dialling | null> {
  // Without IPv6 the second table is missing.
  const tables = await Promise.all([readFile("/proc/net/tcp", "latin1"), readFile("/proc/net/tcp6", "latin1").catch(() => "")]);
  return dialling(tables.flatMap((table) => readListeners(table, port)));
}

/** Whether each of the sockets is open in some process of the sandbox. */
async function holdsAll(processes: SandboxProcesses, inodes: readonly string[]): Promise<boolean> {
  if (processes.pid === null) return false;
  const missing = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for await (const pid of family(processes.pid)) {
    await strikeOff(missing, pid);
    if (missing.size === 0) return true;
  }
  for (const pid of await processes.others()) await strikeOff(missing, pid);
  return missing.size === 0;
}

async function* family(pid: number): AsyncGenerator<number> {
  yield pid;
  // A child is listed under the thread that started it.
  for (const thread of await list(`/proc/${pid}/task`)) {
    const children = await readFile(`/proc/${pid}/task/${thread}/children`, "latin1").catch(() => "");
    for (const child of children.split(" ")) if (child !== "") yield* family(Number(child));
  }
}

async function strikeOff(missing: Set<string>, pid: number): Promise<void> {
  const links = await list(`/proc/${pid}/fd`);
  for (const link of links) missing.delete(await readlink(`/proc/${pid}/fd/${link}`).catch(() => ""));
}

/** Empty if the process has ended or is not ours to look at. */
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
