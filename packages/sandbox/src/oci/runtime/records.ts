import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { ProcessIdentity } from "../../host/process-table.ts";
import { readReplacedFile, replaceFile } from "../../host/replaced-file.ts";

export interface RuntimeRecord {
  readonly id: string;
  /** Null until the sandbox has started. */
  readonly process: ProcessIdentity | null;
  readonly groupPath: string;
  readonly diskMb?: number;
  /** Set-user-id programs change the user. */
  readonly setsUserIds?: boolean;
}

const FILE = "record.json";

/** One folder per sandbox of a runtime. It is written before the sandbox starts, so that a later process finds it. */
export class RuntimeRecords {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** The folder of a sandbox. Its name is also the id that the runtime's program sees: runsc matches ids by prefix, so all have one length. */
  folderOf(id: string): string {
    return join(this.#folder, containerId(id));
  }

  async write(record: RuntimeRecord): Promise<void> {
    const folder = this.folderOf(record.id);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    replaceFile(join(folder, FILE), JSON.stringify(record));
  }

  async find(id: string): Promise<RuntimeRecord | null> {
    return this.#read(containerId(id));
  }

  async get(id: string): Promise<RuntimeRecord> {
    const record = await this.find(id);
    if (record === null) throw new PlatformError("sandbox.lost", `sandbox ${id} does not exist, or was removed`);
    return record;
  }

  async list(): Promise<string[]> {
    const records = await Promise.all((await readdir(this.#folder)).map((name) => this.#read(name)));
    return records.flatMap((record) => record?.id ?? []);
  }

  async remove(id: string): Promise<void> {
    await rm(this.folderOf(id), { recursive: true, force: true });
  }

  async #read(name: string): Promise<RuntimeRecord | null> {
    const text = readReplacedFile(join(this.#folder, name, FILE));
    return text === null ? null : (JSON.parse(text) as RuntimeRecord);
  }
}

export function containerId(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}
