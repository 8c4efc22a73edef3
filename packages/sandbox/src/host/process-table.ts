import { execFileSync } from "node:child_process";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

/** Identifies a process, also if a later process gets the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
}

export interface ProcessRow extends ProcessIdentity {
  readonly parent: number;
  /** The pid of its session leader; 0 where the system does not report it. */
  readonly session: number;
}

/** The processes of this machine, as the system reports them. */
export interface ProcessTable {
  /** Whether processes can be found by their environment. */
  readonly findsMarked: boolean;
  /** The process that has this pid now; null if there is none. */
  find(pid: number): ProcessStatus | null;
  /** The resident memory of a process and, where the system reports them, its descendants; null if it has ended. */
  memoryMbOf(pid: number): number | null;
  /** All processes that have not ended. */
  list(): Promise<readonly ProcessRow[]>;
  /** The children of a process; empty where finding them would be expensive. */
  childrenOf(pid: number): ProcessIdentity[];
  /** The processes whose environment holds the entry `NAME=value`. */
  findMarked(entry: string): Promise<number[]>;
  /** The processes that have the file open for writing. More expensive than a search by environment. */
  findWriters(path: string): Promise<number[]>;
}

export interface ProcessStatus {
  /** Start time. Equal only for the same process. */
  readonly start: string;
  /** It has ended, but its parent has not read its exit code yet. */
  readonly isZombie: boolean;
}

/** The identity of a running process; null if no process with this pid runs. */
export function identityOf(table: ProcessTable, pid: number): ProcessIdentity | null {
  const found = table.find(pid);
  return found === null || found.isZombie ? null : { pid, start: found.start };
}

/** That of a process that may have ended already: then no process has it. */
export function identityNow(table: ProcessTable, pid: number): ProcessIdentity {
  return identityOf(table, pid) ?? { pid, start: "" };
}

export function isRunning(table: ProcessTable, { pid, start }: ProcessIdentity): boolean {
  const found = table.find(pid);
  return found !== null && found.start === start && !found.isZombie;
}

export function openProcessTable(): ProcessTable {
  return process.platform === "linux" ? new ProcTable() : new PsTable();
}

/** Linux: reads /proc. */
export class ProcTable implements ProcessTable {
  readonly findsMarked = true;
  // Start times count from the boot, so the boot id is part of the identity.
  readonly #boot = (read("/proc/sys/kernel/random/boot_id") ?? "").slice(0, 8);
  #listing: Promise<readonly ProcessRow[]> | undefined;
  #searching: Promise<void> | undefined;
  #wanted = new Map<string, number[]>();

  find(pid: number): (ProcessStatus & ProcessRow) | null {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === null) return null;
    // The name, in parentheses, may itself contain spaces and parentheses. After it: state, parent, group, session; the start time is
    // the twentieth.
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

  /** Concurrent calls share one scan of /proc, as in `findMarked`. */
  list(): Promise<readonly ProcessRow[]> {
    this.#listing ??= this.#scan();
    return this.#listing;
  }

  async #scan(): Promise<readonly ProcessRow[]> {
    await setImmediate();
    // A later call needs a new scan: this one may have passed a process that started since.
    this.#listing = undefined;
    const rows: ProcessRow[] = [];
    for await (const pid of allPids(50)) {
      const row = this.find(pid);
      if (row !== null && !row.isZombie) rows.push(row);
    }
    return rows;
  }

  childrenOf(pid: number): ProcessIdentity[] {
    const children = read(`/proc/${pid}/task/${pid}/children`)?.trim() ?? "";
    if (children === "") return [];
    return children.split(" ").flatMap((child) => this.find(Number(child)) ?? []);
  }

  memoryMbOf(pid: number): number | null {
    const status = read(`/proc/${pid}/status`);
    const match = status === null ? null : /^VmRSS:\s+(\d+) kB/m.exec(status);
    if (match === null) return null;
    let total = Number(match[1]) / 1024;
    for (const child of this.childrenOf(pid)) total += this.memoryMbOf(child.pid) ?? 0;
    return total;
  }

  /** Concurrent searches share one scan of /proc. */
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
    // Calls of the same turn of the event loop join this scan.
    await setImmediate();
    const wanted = this.#wanted;
    this.#wanted = new Map();
    for await (const pid of allPids(50)) {
      const environment = read(`/proc/${pid}/environ`);
      if (environment === null || environment === "") continue;
      for (const entry of environment.split("\0")) wanted.get(entry)?.push(pid);
    }
  }

  async findWriters(path: string): Promise<number[]> {
    const found: number[] = [];
    for await (const pid of allPids(5)) if (isWriter(pid, path)) found.push(pid);
    return found;
  }
}

/** All pids, with a pause after every batch, so that a long scan does not block the event loop. */
async function* allPids(batch: number): AsyncGenerator<number> {
  let count = 0;
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    if (++count % batch === 0) await setImmediate();
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

/** On the link of a file descriptor, this bit means that it was opened for writing. */
const OWNER_MAY_WRITE = 0o200;

/** Other systems: `ps` lists processes and their memory, but not reliably their environment. */
export class PsTable implements ProcessTable {
  readonly findsMarked = false;

  find(pid: number): ProcessStatus | null {
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

/** Null if the process has ended or belongs to another user. */
function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
