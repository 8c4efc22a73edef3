import { randomUUID } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EgressPolicy } from "@aenv/contract";
import type { ProcessIdentity } from "../host/process-table.ts";

/** A network of a sandbox. It is written before the network exists, so that nothing is forgotten after a crash. */
export interface NetworkRecord {
  readonly index: number;
  /** The process that created or adopted the network. */
  readonly owner: ProcessIdentity;
  /** A pooled network has no sandbox yet. */
  readonly state: "pooled" | "taken";
  readonly egress: EgressPolicy;
}

/** One JSON file per name; several processes of a home share the folder. A file is complete from the moment it exists. */
export class RecordFiles<T> {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** False if there is one with this name. */
  async add(name: string, value: T): Promise<boolean> {
    const part = await this.#write(value);
    try {
      await link(part, this.#path(name));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    } finally {
      await rm(part, { force: true });
    }
  }

  async replace(name: string, value: T): Promise<void> {
    await rename(await this.#write(value), this.#path(name));
  }

  async find(name: string): Promise<T | null> {
    try {
      return JSON.parse(await readFile(this.#path(name), "utf8")) as T;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  async names(prefix: string): Promise<string[]> {
    const files = await readdir(this.#folder);
    return files.flatMap((file) => (file.startsWith(prefix) && file.endsWith(".json") ? [file.slice(0, -".json".length)] : []));
  }

  async remove(name: string): Promise<void> {
    await rm(this.#path(name), { force: true });
  }

  async #write(value: T): Promise<string> {
    const part = join(this.#folder, `${randomUUID()}.part`);
    await writeFile(part, JSON.stringify(value), { mode: 0o600 });
    return part;
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.json`);
  }
}
