import { execFileSync } from "node:child_process";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
}

/** What the system says of its processes. */
export interface ProcessTable {
  /** Whether processes can be found by their environment. */
  readonly findsMarked: boolean;
  /** Who has this number now; null if nobody. */
  look(pid: number): Sighting | null;
  /** The resident memory of a process and, where the system tells them, its descendants; null if it is gone. */
  memoryMbOf(pid: number): number | null;
  /** The processes whose environment holds the entry `NAME=value`. */
  findMarked(entry: string): Promise<number[]>;
  /** The processes that have the file open for writing. Dearer than to search by environment. */
  findWriters(path: string): Promise<number[]>;
}

export interface Sighting {
  /** Compares equal only for one and the same process. */
  readonly start: string;
  /** Ended, but its parent has not asked yet how. */
  readonly isZombie: boolean;
}

export function isRunning(table: ProcessTable, { pid, start }: ProcessIdentity): boolean {
  const seen = table.look(pid);
  return seen !== null && seen.start === start && !seen.isZombie;
}

export function openProcessTable(): ProcessTable {
  return process.platform === "linux" ? new ProcTable() : new PsTable();
}

/** Linux: everything stands in /proc. */
export class ProcTable implements ProcessTable {
  readonly findsMarked = true;
  // Start times count from the boot, so they only tell processes of one boot apart.
  readonly #boot = (read("/proc/sys/kernel/random/boot_id") ?? "").slice(0, 8);
  #searching: Promise<void> | undefined;
  #wanted = new Map<string, number[]>();

  look(pid: number): Sighting | null {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === null) return null;
    // The name, in parentheses, may itself hold spaces and parentheses. Behind it: the state first, the start time twentieth.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { start: `${fields[19]}.${this.#boot}`, isZombie: fields[0] === "Z" || fields[0] === "X" };
  }

  memoryMbOf(pid: number): number | null {
    const status = read(`/proc/${pid}/status`);
    const match = status === null ? null : /^VmRSS:\s+(\d+) kB/m.exec(status);
    if (match === null) return null;
    let total = Number(match[1]) / 1024;
    const children = read(`/proc/${pid}/task/${pid}/children`)?.trim() ?? "";
    if (children !== "") for (const child of children.split(" ")) total += this.memoryMbOf(Number(child)) ?? 0;
    return total;
  }

  /** Searches asked for together share one walk through /proc. */
  async findMarked(entry: string): Promise<number[]> {
    await this.#searching;
    const found = this.#wanted.get(entry) ?? [];
    this.#wanted.set(entry, found);
    this.#searching ??= this.#search().finally(() => {
      this.#searching = undefined;
    });
    await this.#searching;
    return found;
  }

  async #search(): Promise<void> {
    // Those who ask in the same breath come along.
    await setImmediate();
    const wanted = this.#wanted;
    this.#wanted = new Map();
    for await (const pid of everyone(50)) {
      const environment = read(`/proc/${pid}/environ`);
      if (environment === null || environment === "") continue;
      for (const entry of environment.split("\0")) wanted.get(entry)?.push(pid);
    }
  }

  async findWriters(path: string): Promise<number[]> {
    const found: number[] = [];
    for await (const pid of everyone(5)) if (isWriter(pid, path)) found.push(pid);
    return found;
  }
}

/** All processes, with a pause after every few, so that a long walk holds nobody up. */
async function* everyone(few: number): AsyncGenerator<number> {
  let seen = 0;
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    if (++seen % few === 0) await setImmediate();
    yield pid;
  }
}

function isWriter(pid: number, path: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const link = `/proc/${pid}/fd/${fd}`;
      return readlinkSync(link) === path && (lstatSync(link).mode & OWNER_MAY_WRITE) !== 0;
    });
  } catch {
    return false;
  }
}

/** On a file descriptor's link, this tells how it was opened. */
const OWNER_MAY_WRITE = 0o200;

/** Elsewhere: `ps` tells who runs and how large it is, but not reliably with which environment. */
export class PsTable implements ProcessTable {
  readonly findsMarked = false;

  look(pid: number): Sighting | null {
    const [state = "", ...start] = ps(pid, "state=,lstart=").split(/\s+/);
    return state === "" ? null : { start: start.join("-"), isZombie: state.startsWith("Z") };
  }

  memoryMbOf(pid: number): number | null {
    const kilobytes = ps(pid, "rss=");
    return kilobytes === "" ? null : Number(kilobytes) / 1024;
  }

  findMarked(): Promise<number[]> {
    return Promise.resolve([]);
  }

  findWriters(): Promise<number[]> {
    return Promise.resolve([]);
  }
}

function ps(pid: number, columns: string): string {
  try {
    return execFileSync("ps", ["-o", columns, "-p", String(pid)], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
}

/** Null if the process ended meanwhile, or is someone else's. */
function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
