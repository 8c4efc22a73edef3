import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { isOurGroup } from "./control-groups.ts";
import type { ProcessIdentity } from "./process-table.ts";

/** What is known of a sandbox, as it stands in its `sandbox.json`. */
export interface SandboxRecord {
  readonly format: 2;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
  /** Where it listens: in its folder, or, if that path is too long for a socket, in a folder of its own elsewhere. */
  readonly socket: string;
  readonly memoryMb: number | null;
  /** Part of the mark in its processes' environment, so that no other process can bear it by chance or by intent. */
  readonly secret: string;
  /** The folder of its control group; null where there are none. */
  readonly group: string | null;
  /** Who makes it; while that process lives, an unfinished sandbox is none of anyone else's business. */
  readonly maker: ProcessIdentity;
  /** Null until the program is started. */
  readonly process: ProcessIdentity | null;
  /** Whether it has answered, and so belongs to someone. */
  readonly isReady: boolean;
}

const RECORD = "sandbox.json";
/** Folders that are being made or removed; their names tell by whom. */
const PART = ".part-";

/** The place of one sandbox on disk: its record, its log, and a working and a temporary directory for the program. */
export class SandboxFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  get log(): string {
    return join(this.path, "log");
  }

  get work(): string {
    return join(this.path, "work");
  }

  get temporary(): string {
    return join(this.path, "tmp");
  }

  /** Appears whole or not at all; refused if a sandbox of this id is there. */
  create(record: SandboxRecord): void {
    const part = partName(dirname(this.path), record.maker);
    mkdirSync(join(part, "work"), { recursive: true, mode: 0o700 });
    mkdirSync(join(part, "tmp"), { mode: 0o700 });
    writeFileSync(join(part, RECORD), JSON.stringify(record));
    try {
      renameSync(part, this.path);
    } catch (cause) {
      rmSync(part, { recursive: true, force: true });
      if (!["ENOTEMPTY", "EEXIST"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
      throw new PlatformError("sandbox.exists", `a sandbox '${record.id}' is there already; destroy it first, or choose another id`, {
        cause,
      });
    }
    if (dirname(record.socket) !== this.path) mkdirSync(dirname(record.socket), { mode: 0o700 });
  }

  write(record: SandboxRecord): void {
    const part = join(this.path, `${RECORD}.part`);
    writeFileSync(part, JSON.stringify(record));
    renameSync(part, join(this.path, RECORD));
  }

  /** Null if there is none, or none that this version understands. */
  read(): SandboxRecord | null {
    try {
      const record = JSON.parse(readFileSync(join(this.path, RECORD), "utf8"));
      if (record?.format !== 2) return null;
      return { ...record, group: isOurGroup(record.group, basename(this.path)) ? record.group : null };
    } catch {
      return null;
    }
  }

  /** Gone from sight at once; the files follow. */
  async remove(record: SandboxRecord | null, remover: ProcessIdentity): Promise<void> {
    if (record !== null && dirname(record.socket) !== this.path) await removeFolder(dirname(record.socket));
    const part = partName(dirname(this.path), remover);
    try {
      renameSync(this.path, part);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await removeFolder(part);
  }
}

/** Everything below the folder of all sandboxes: sandboxes by id, and what is being made or removed with who does so. */
export function readSandboxes(sandboxes: string): { ids: string[]; parts: { path: string; by: ProcessIdentity }[] } {
  const ids: string[] = [];
  const parts: { path: string; by: ProcessIdentity }[] = [];
  for (const entry of readdirSync(sandboxes, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    if (isSandboxId(entry.name)) ids.push(entry.name);
    if (!entry.name.startsWith(PART)) continue;
    const [pid, start = ""] = entry.name.slice(PART.length).split("_");
    parts.push({ path: join(sandboxes, entry.name), by: { pid: Number(pid), start } });
  }
  return { ids, parts };
}

/** An id names a folder, so it must stay where it is put. */
export function isSandboxId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id);
}

/** The longest path a socket may have, without the zero at its end. */
const MAX_SOCKET_BYTES = process.platform === "linux" ? 107 : 103;

/** A socket in the sandbox's folder, or, if its path were too long, in a short one below the runtime folder. */
export function socketFor(folder: string, runtime: string): string {
  const own = join(folder, "s");
  if (Buffer.byteLength(own) <= MAX_SOCKET_BYTES) return own;
  const short = join(runtime, `aenv-${randomBytes(9).toString("hex")}`, "s");
  if (Buffer.byteLength(short) <= MAX_SOCKET_BYTES) return short;
  throw new PlatformError("sandbox.unsupported", `a socket's path may have ${MAX_SOCKET_BYTES} bytes; neither ${own} nor ${short} fits`);
}

function partName(sandboxes: string, { pid, start }: ProcessIdentity): string {
  return join(sandboxes, `${PART}${pid}_${start}_${randomBytes(6).toString("hex")}`);
}

/** Removes a folder, also if its owner took its own permissions away, as caches of packages do. */
export async function removeFolder(path: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 3 } as const;
  try {
    await rm(path, options);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    unlock(path);
    await rm(path, options);
  }
}

function unlock(folder: string): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) unlock(join(folder, entry.name));
}
