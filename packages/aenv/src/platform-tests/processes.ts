import { readdirSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { ProcessEngine } from "@aenv/sandbox";

export interface Found {
  readonly pid: number;
  readonly command: string;
}

/** Other processes whose command line or environment names the folder. Empty without /proc. */
export function processesOf(folder: string): Found[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => ({ pid: Number(name), command: read(`/proc/${name}/cmdline`), environment: read(`/proc/${name}/environ`) }))
    .filter(({ command, environment }) => command.includes(folder) || environment.includes(folder))
    .map(({ pid, command }) => ({ pid, command: command.replaceAll("\0", " ").trim() }));
}

/** The same for processes that should be gone, after giving them time to exit. */
export async function leftOf(folder: string): Promise<Found[]> {
  let found = processesOf(folder);
  for (let round = 0; found.length > 0 && round < 20; round++) {
    await pause(50);
    found = processesOf(folder);
  }
  return found;
}

export function endProcesses(processes: readonly Found[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has exited.
    }
  }
}

/** Removes the home of servers that were killed, with all that they left: their processes, and the control groups of these. */
export async function removeHome(home: string): Promise<void> {
  const engine = new ProcessEngine({ home, graceMs: 0 });
  for (const sandbox of await engine.list()) await sandbox.destroy();
  await engine.close();
  endProcesses(processesOf(home));
  rmSync(home, { recursive: true, force: true });
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Exited meanwhile, or not readable.
    return "";
  }
}
