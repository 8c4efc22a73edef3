import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isSandboxGroup } from "../host/control-groups.ts";
import type { ProcessIdentity, ProcessTable } from "../host/process-table.ts";
import { Records } from "../host/records.ts";
import { removeFolder } from "../host/remove-tree.ts";
import { isSandboxId } from "../lifecycle/spec-check.ts";

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
}

/** The folders of all sandboxes of a home. */
export class SandboxFolders {
  readonly #records: Records<SandboxRecord>;

  constructor(path: string, self: ProcessIdentity) {
    this.#records = new Records(path, { noun: "sandbox", format: 2, self, file: "sandbox.json" });
  }

  folderOf(id: string): SandboxFolder {
    return new SandboxFolder(this.#records.folderOf(id));
  }

  async create(record: SandboxRecord): Promise<void> {
    this.#records.create(record.id, record, ["work", "tmp"]);
    if (this.#isElsewhere(record)) await mkdir(dirname(record.socket), { mode: 0o700 });
  }

  write(record: SandboxRecord): void {
    this.#records.write(record.id, record);
  }

  /** Null if it is missing, damaged or of another format. */
  find(id: string): SandboxRecord | null {
    const record = this.#records.find(id);
    return record && { ...record, group: isSandboxGroup(record.group, id) ? record.group : null };
  }

  ids(): string[] {
    return this.#records.ids().filter(isSandboxId);
  }

  /** The sandbox disappears at once, before its files are deleted. */
  async remove(id: string, record: SandboxRecord | null): Promise<void> {
    if (record !== null && this.#isElsewhere(record)) await removeFolder(dirname(record.socket));
    await this.#records.remove(id);
  }

  /** Removes what processes left that were killed while they created or removed a folder. */
  removeParts(processes: ProcessTable): Promise<void> {
    return this.#records.removeParts(processes);
  }

  #isElsewhere({ id, socket }: SandboxRecord): boolean {
    return dirname(socket) !== this.#records.folderOf(id);
  }
}
