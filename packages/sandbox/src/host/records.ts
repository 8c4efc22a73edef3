import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { isRunning, type ProcessIdentity, type ProcessTable } from "./process-table.ts";
import { removeFolder } from "./remove-tree.ts";
import { readReplacedFile, replaceFile } from "./replaced-file.ts";

/** Prefix of folders that are being created or removed; the process that does so is part of the name. */
const PART = ".part-";

export interface RecordsOptions<T extends { readonly format: number }> {
  readonly noun: string;
  readonly format: T["format"];
  readonly self: ProcessIdentity;
  /** The name of the record in its folder. */
  readonly file?: string;
}

/** Folders with one record each. A record is written before anything that it describes exists, and removed after it. */
export class Records<T extends { readonly format: number }> {
  readonly #folder: string;
  readonly #format: T["format"];
  readonly #noun: string;
  readonly #file: string;
  readonly #self: ProcessIdentity;

  constructor(folder: string, { noun, format, self, file = "record.json" }: RecordsOptions<T>) {
    this.#self = self;
    this.#file = file;
    this.#folder = folder;
    this.#noun = noun;
    this.#format = format;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  folderOf(id: string): string {
    return join(this.#folder, id);
  }

  /** The folder appears with its record and these folders, or not at all. Throws `sandbox.exists` if the id is in use. */
  create(id: string, record: T, folders: readonly string[] = []): void {
    const part = this.#part();
    for (const folder of ["", ...folders]) mkdirSync(join(part, folder), { mode: 0o700 });
    writeFileSync(join(part, this.#file), JSON.stringify(record), { mode: 0o600 });
    try {
      renameSync(part, this.folderOf(id));
    } catch (cause) {
      rmSync(part, { recursive: true, force: true });
      if (!["ENOTEMPTY", "EEXIST"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
      throw new PlatformError("sandbox.exists", `a ${this.#noun} '${id}' exists already; destroy it first, or choose another id`, {
        cause,
      });
    }
  }

  write(id: string, record: T): void {
    replaceFile(join(this.folderOf(id), this.#file), JSON.stringify(record));
  }

  /** Null if it is missing, damaged or of another format. */
  find(id: string): T | null {
    try {
      const record = JSON.parse(readReplacedFile(join(this.folderOf(id), this.#file)) ?? "null") as T | null;
      return record?.format === this.#format ? record : null;
    } catch {
      return null;
    }
  }

  ids(): string[] {
    const entries = readdirSync(this.#folder, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith(PART) ? [entry.name] : []));
  }

  /** Renames the folder first, so that the id is free at once. Idempotent. */
  async remove(id: string): Promise<void> {
    const part = this.#part();
    try {
      renameSync(this.folderOf(id), part);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await removeFolder(part);
  }

  /** Removes what processes left that were killed while they created or removed a folder. */
  async removeParts(processes: ProcessTable): Promise<void> {
    for (const name of readdirSync(this.#folder)) {
      if (!name.startsWith(PART)) continue;
      const [pid, start = ""] = name.slice(PART.length).split("_");
      if (!isRunning(processes, { pid: Number(pid), start })) await removeFolder(join(this.#folder, name));
    }
  }

  #part(): string {
    return join(this.#folder, `${PART}${this.#self.pid}_${this.#self.start}_${randomBytes(6).toString("hex")}`);
  }
}
