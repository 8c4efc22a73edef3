import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isSandboxGroup } from "../host/control-groups.ts";
import type { ProcessIdentity } from "../host/process-table.ts";
import { removeFolder } from "../host/remove-tree.ts";
import { isSandboxId } from "../lifecycle/spec-check.ts";
import { existsAlready } from "../lifecycle/start-errors.ts";

/** The content of a sandbox's `sandbox.json`. */
export interface SandboxRecord {
  readonly format: 2;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
  /** Its socket: in its folder or, if that path is too long for a socket, in a folder of its own elsewhere. */
  readonly socket: string;
  /** The port on which its program listens, and the address once that is known; absent if it listens on the socket. */
  readonly port?: number;
  readonly host?: string;
  readonly memoryMb: number | null;
  /** Part of the marker in its processes' environment, so that no other process has it by chance or by intent. */
  readonly secret: string;
  /** The folder of its control group; null if it has none. */
  readonly group: string | null;
  /** Whether an init runs beside the program. */
  readonly hasInit?: boolean;
  /** The process that created it. While that process runs, no other one touches an unfinished sandbox. */
  readonly maker: ProcessIdentity;
  /** Null until the program is started. */
  readonly process: ProcessIdentity | null;
  /** Whether it has answered and `create` has returned it. */
  readonly isReady: boolean;
}

const RECORD = "sandbox.json";
/** Prefix of folders that are being created or removed; the process that does so is part of the name. */
const PART = ".part-";

/** The folder of one sandbox: its record, its log, and a working and a temporary directory for the program. */
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

  /** Atomic: the folder appears complete or not at all. Fails if a sandbox with this id exists. */
  async create(record: SandboxRecord): Promise<void> {
    const part = partName(dirname(this.path), record.maker);
    await mkdir(join(part, "work"), { recursive: true, mode: 0o700 });
    await mkdir(join(part, "tmp"), { mode: 0o700 });
    await writeFile(join(part, RECORD), JSON.stringify(record));
    try {
      await rename(part, this.path);
    } catch (cause) {
      await rm(part, { recursive: true, force: true });
      if (!["ENOTEMPTY", "EEXIST"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
      throw existsAlready(record.id, cause);
    }
    if (dirname(record.socket) !== this.path) await mkdir(dirname(record.socket), { mode: 0o700 });
  }

  async write(record: SandboxRecord): Promise<void> {
    const part = join(this.path, `${RECORD}.part`);
    await writeFile(part, JSON.stringify(record));
    await rename(part, join(this.path, RECORD));
  }

  /** Null if it is missing, damaged or of another format. */
  read(): SandboxRecord | null {
    try {
      const record = JSON.parse(readFileSync(join(this.path, RECORD), "utf8"));
      if (record?.format !== 2) return null;
      return { ...record, group: isSandboxGroup(record.group, basename(this.path)) ? record.group : null };
    } catch {
      return null;
    }
  }

  /** Renames the folder first, so that the sandbox disappears at once, then deletes the files. */
  async remove(record: SandboxRecord | null, remover: ProcessIdentity): Promise<void> {
    if (record !== null && dirname(record.socket) !== this.path) await removeFolder(dirname(record.socket));
    const part = partName(dirname(this.path), remover);
    try {
      await rename(this.path, part);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await removeFolder(part);
  }
}

/** The ids of all sandboxes in the folder, and the folders that are being created or removed, with the process that does so. */
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

function partName(sandboxes: string, { pid, start }: ProcessIdentity): string {
  return join(sandboxes, `${PART}${pid}_${start}_${randomBytes(6).toString("hex")}`);
}
