import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export interface Found {
  readonly pid: number;
  readonly command: string;
}

/** The processes, but for this one, whose command line or environment names the folder. Empty where there is no /proc. */
export function processesOf(folder: string): Found[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => ({ pid: Number(name), command: read(`/proc/${name}/cmdline`), environment: read(`/proc/${name}/environ`) }))
    .filter(({ command, environment }) => command.includes(folder) || environment.includes(folder))
    .map(({ pid, command }) => ({ pid, command: command.replaceAll("\0", " ").trim() }));
}

/** The same, of what should be gone: who was ended a moment ago may still be on its way out. */
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
      // It has ended by itself.
    }
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Gone meanwhile, or not ours to look at.
    return "";
  }
}
