// Starts programs for a server, in a process of its own: see `launcher.ts`.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { joinGroup } from "../host/control-groups.ts";
import type { LaunchOrder, LaunchReport } from "./launcher.ts";

/** Not read as the parent of this process: the server may end before this line runs. */
const server = Number(process.argv[2]);

process.on("message", (order) => void follow(order as LaunchOrder));
process.once("disconnect", () => process.exit());
// It ends after its server, which may get the same signal and still end sandboxes.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);

/** Starts a program, and reports that it runs and how it ends. */
async function follow(order: LaunchOrder): Promise<void> {
  const { id, group } = order;
  try {
    const child = start(order);
    const ended = new Promise<LaunchReport>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => resolve({ kind: "ended", id, exit: { code, signal } }));
    });
    const { pid } = child;
    if (pid !== undefined) {
      giveWay(child, pid);
      const groupError = group === undefined ? null : await joinGroup(group, pid).then(() => null, codeOf);
      report({ kind: "started", id, pid, groupError });
    }
    report(await ended);
  } catch (error) {
    report({ kind: "failed", id, code: codeOf(error), message: (error as Error).message });
  }
}

function start({ file, args, variables, cwd, log }: LaunchOrder): ChildProcess {
  const output = openSync(log, "a", 0o600);
  try {
    // The next server kills every process that has this file open. It would not find a program that is started after its search.
    if (process.ppid !== server) process.exit();
    return spawn(file, args, { cwd, env: { ...variables }, detached: true, stdio: ["ignore", output, output] });
  } finally {
    closeSync(output);
  }
}

/** A server of the same machine answers others while its sandboxes use every processor. They share what it leaves. */
const NICENESS = 10;
/** Without root, the kernel accepts one change of a session per 100 ms on the whole machine. */
const NEXT_CHANGE_MS = 100;

function giveWay(child: ChildProcess, pid: number): void {
  try {
    setPriority(pid, NICENESS);
    // The kernel may share processors between sessions, and the priorities of processes then count within their session only.
    writeFileSync(`/proc/${pid}/autogroup`, `${NICENESS}`);
  } catch (error) {
    // Other systems and kernels have no such file. The program then runs as any other.
    if (codeOf(error) !== "EAGAIN") return;
    const timer = setTimeout(() => giveWay(child, pid), NEXT_CHANGE_MS);
    child.once("exit", () => clearTimeout(timer));
  }
}

function report(report: LaunchReport): void {
  process.send?.(report, () => undefined);
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}
