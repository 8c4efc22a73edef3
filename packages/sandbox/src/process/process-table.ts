import { execFileSync } from "node:child_process";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
}

/** One process among all of them. */
export interface ProcessRow extends ProcessIdentity {
  readonly parent: number;
  /** The number of the process that began its session; 0 where the system does not tell. */
  readonly session: number;
}

/** What the system says of its processes. */
export interface ProcessTable {
  /** Whether processes can be found by their environment. */
  readonly findsMarked: boolean;
  /** Who has this number now; null if nobody. */
  look(pid: number): Sighting | null;
  /** The resident memory of a process and, where the system tells them, its descendants; null if it is gone. */
  memoryMbOf(pid: number): number | null;
  /** All processes that have not ended. */
  list(): Promise<readonly ProcessRow[]>;
  /** The children of a process; none where that would be dear to find out. */
  childrenOf(pid: number): ProcessIdentity[];
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
  #listing: Promise<readonly ProcessRow[]> | undefined;
  #searching: Promise<void> | undefined;
  #wanted = new Map<string, number[]>();

  look(pid: number): (Sighting & ProcessRow) | null {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === null) return null;
    // The name, in parentheses, may itself hold spaces and parentheses. Behind it: state, parent, group, session; the start time
    // is the twentieth.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, , session] = fields;
    return {
      pid,
      start: `${fields[19]}.${this.#boot}`,
      isZombie: state === "Z" || state === "X",
      parent: Number(parent),
      session: Number(session),
    };
  }

  /** Those who ask together share one walk through /proc, as in `findMarked`. */
  list(): Promise<readonly ProcessRow[]> {
    this.#listing ??= this.#walk();
    return this.#listing;
  }

  async #walk(): Promise<readonly ProcessRow[]> {
    await setImmediate();
    // Whoever asks from now on may mean a process that this walk has passed already.
    this.#listing = undefined;
    const rows: ProcessRow[] = [];
    for await (const pid of everyone(50)) {
      const row = this.look(pid);
      if (row !== null && !row.isZombie) rows.push(row);
    }
    return rows;
  }

  childrenOf(pid: number): ProcessIdentity[] {
    const children = read(`/proc/${pid}/task/${pid}/children`)?.trim() ?? "";
    if (children === "") return [];
    return children.split(" ").flatMap((child) => this.look(Number(child)) ?? []);
  }

  memoryMbOf(pid: number): number | null {
    const status = read(`/proc/${pid}/status`);
    const match = status === null ? null : /^VmRSS:\s+(\d+) kB/m.exec(status);
    if (match === null) return null;
    let total = Number(match[1]) / 1024;
    for (const child of this.childrenOf(pid)) total += this.memoryMbOf(child.pid) ?? 0;
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
    const [state = "", ...start] = ps(["-p", String(pid)], "state=,lstart=").split(/\s+/);
    return state === "" ? null : { start: start.join("-"), isZombie: state.startsWith("Z") };
  }

  memoryMbOf(pid: number): number | null {
    const kilobytes = ps(["-p", String(pid)], "rss=");
    return kilobytes === "" ? null : Number(kilobytes) / 1024;
  }

  async list(): Promise<readonly ProcessRow[]> {
    const lines = ps(["-A"], "pid=,ppid=,state=,lstart=").split("\n");
    return lines.flatMap((line) => {
      const [pid, parent, state = "Z", ...start] = line.trim().split(/\s+/);
      return state.startsWith("Z") ? [] : { pid: Number(pid), parent: Number(parent), session: 0, start: start.join("-") };
    });
  }

  childrenOf(): ProcessIdentity[] {
    return [];
  }

  findMarked(): Promise<number[]> {
    return Promise.resolve([]);
  }

  findWriters(): Promise<number[]> {
    return Promise.resolve([]);
  }
}

function ps(which: readonly string[], columns: string): string {
  try {
    return execFileSync("ps", ["-o", columns, ...which], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
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
