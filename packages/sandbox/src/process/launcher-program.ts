// Starts programs for a server, in a process of its own: see `launcher.ts`.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
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

function report(report: LaunchReport): void {
  process.send?.(report, () => undefined);
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}
