import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { PlatformError } from "@aenv/contract";
import { identityNow, isRunning, openProcessTable, type ProcessTable } from "../host/process-table.ts";
import { removeTree } from "../host/remove-tree.ts";

/** `sha256:…` is the digest of an image's uncompressed layer, `snapshot:…` a random id of a sandbox's changes. */
export type LayerId = string;

/** `layer.json` beside a layer's files. Its time of change is when the layer was last used. */
interface LayerRecord {
  readonly id: LayerId;
}

/** A layer that was not there before. */
export interface AddedLayer {
  readonly id: LayerId;
  readonly usedAtMs: number;
}

export interface Collected {
  /** The layers that were removed. */
  readonly layers: readonly LayerId[];
  /** Folders of processes that ended before they had finished. */
  readonly unfinished: number;
}

const RECORD = "layer.json";
const FILES = "diff";
const SNAPSHOT = "snapshot:";
/** Folders that are being filled or deleted, and layers that are about to be deleted. The process that does so is part of the name. */
const PART = ".part-";
const EVICTED = ".evicted-";

/**
 * The unpacked layers of one folder, shared by the sandboxes of several processes. Nothing is locked: a layer appears by a rename when
 * it is complete. A user first writes down what it uses and then checks that it is there; the collector first moves a layer away
 * and then reads what is used. So at least one of them sees the other.
 *
 * A layer of an image can be pulled again, and is kept for a while without users. A layer of a snapshot has the files of a sandbox: its use
 * is written down before it appears, and it is deleted with its last use.
 */
export class LayerStore {
  /** The folder in which relative paths of layers are resolved. */
  readonly folder: string;
  readonly #uses: string;
  readonly #processes: ProcessTable;
  readonly #self: string;
  readonly #adding = new Map<LayerId, Promise<AddedLayer | null>>();

  constructor(folder: string, processes: ProcessTable = openProcessTable()) {
    this.folder = join(folder, "layers");
    this.#uses = join(folder, "uses");
    this.#processes = processes;
    const { pid, start } = identityNow(processes, process.pid);
    this.#self = `${pid}_${start}`;
    for (const path of [this.folder, this.#uses]) mkdirSync(path, { recursive: true, mode: 0o700 });
  }

  /** The files of a layer, relative to `folder`: the options of a mount have a limited length. */
  filesOf(id: LayerId): string {
    return join(nameOf(id), FILES);
  }

  has(id: LayerId): boolean {
    const path = this.#recordOf(id);
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch {
      return false;
    }
    const record = JSON.parse(text) as LayerRecord;
    if (record.id !== id) throw new PlatformError("bundle.damaged", `the folder of layer ${id} contains layer ${record.id}`);
    return true;
  }

  /** Adds a layer whose files `fill` writes into a folder. Null if the layer is there; if two processes add it, the first one wins. */
  async add(id: LayerId, fill: (files: string) => Promise<void>): Promise<AddedLayer | null> {
    // Images that are pulled at the same time share layers: the second one waits, and fills it only if the first one has failed.
    const before = this.#adding.get(id);
    const adding = before === undefined ? this.#add(id, fill) : before.catch(() => {}).then(() => this.#add(id, fill));
    this.#adding.set(id, adding);
    try {
      return await adding;
    } finally {
      if (this.#adding.get(id) === adding) this.#adding.delete(id);
    }
  }

  async #add(id: LayerId, fill: (files: string) => Promise<void>): Promise<AddedLayer | null> {
    if (this.#touch(id)) return null;
    const part = this.#temporary(PART);
    try {
      await mkdir(join(part, FILES), { recursive: true });
      await fill(join(part, FILES));
      // The name must not reach the disk before the content does.
      await promisify(execFile)("sync", process.platform === "linux" ? ["-f", part] : []);
      if (!(await this.#publish(id, part))) return null;
      const { mtimeMs } = await stat(this.#recordOf(id)).catch(() => ({ mtimeMs: Number.NaN }));
      return { id, usedAtMs: mtimeMs };
    } finally {
      await removeTree(part);
    }
  }

  /** Removes layers that `add` has added, unless somebody has relied on one since, which sets its time. */
  async discard(added: readonly AddedLayer[]): Promise<void> {
    for (const { id, usedAtMs } of added) {
      const found = await stat(this.#recordOf(id)).catch(() => null);
      if (found?.mtimeMs === usedAtMs) await this.#evict(nameOf(id));
    }
  }

  /** A new folder on the file system of the layers. If this process ends before it removes the folder, `collect` does. */
  async temporaryFolder(): Promise<string> {
    const path = this.#temporary(PART);
    await mkdir(path);
    return path;
  }

  /** Makes a folder of the same file system a layer above `below`, by a rename. Returns all of these, which `holder` uses until `release`. */
  async adopt(files: string, holder: string, below: readonly LayerId[]): Promise<readonly LayerId[]> {
    const id = `${SNAPSHOT}${randomBytes(16).toString("hex")}`;
    const ids = [...below, id];
    this.announce(holder, ids);
    const part = await this.temporaryFolder();
    await rename(files, join(part, FILES));
    await this.#publish(id, part);
    return ids;
  }

  /** Protects layers until `release`, also those that are about to be added. */
  announce(holder: string, ids: readonly LayerId[]): void {
    const part = join(this.#uses, `${PART}${randomBytes(6).toString("hex")}`);
    // Not through the thread pool, here and in `#touch`: every start of a sandbox waits for it.
    writeFileSync(part, JSON.stringify(ids));
    renameSync(part, this.#useOf(holder));
  }

  /** Protects layers until `release`. Throws if one is missing: `bundle.not_found` for one of an image, which can be pulled again. */
  async use(holder: string, ids: readonly LayerId[]): Promise<void> {
    this.announce(holder, ids);
    for (const id of ids) {
      if (await this.#keep(id)) continue;
      await this.release(holder);
      if (isOfSnapshot(id))
        throw new PlatformError("snapshot.not_found", `layer ${id} is not in ${this.folder}: its snapshot was removed; take it again`);
      throw new PlatformError("bundle.not_found", `layer ${id} is not in ${this.folder}; pull its image again`);
    }
  }

  /** Idempotent. Deletes the layers of snapshots that nobody else uses. */
  async release(holder: string): Promise<void> {
    const ids = (await this.#usedBy(holder)) ?? [];
    await rm(this.#useOf(holder), { force: true });
    const own = ids.filter(isOfSnapshot).map(nameOf);
    if (own.length === 0) return;
    const used = await this.#used();
    for (const name of own) if (!used.has(name)) await this.#evict(name);
  }

  /** Who uses layers. After a crash, the caller releases those that have ended. */
  async holders(): Promise<string[]> {
    return (await readdir(this.#uses)).filter((name) => !name.startsWith(PART));
  }

  /**
   * Removes layers of images that nobody uses and that were last used before `idleSince`, all layers of snapshots that nobody uses, and what
   * processes that ended left unfinished.
   */
  async collect(idleSince: Date): Promise<Collected> {
    const unfinished = await this.#removeUnfinished();
    const layers: LayerId[] = [];
    // Before the uses are read: those of a snapshot's layer are older than the layer.
    const names = await readdir(this.folder);
    const used = await this.#used();
    for (const name of names) {
      if (name.startsWith(".") || used.has(name)) continue;
      const record = join(this.folder, name, RECORD);
      const [changed, text] = await Promise.all([stat(record), readFile(record, "utf8")]).catch(() => [null, ""] as const);
      if (changed === null) continue;
      const { id } = JSON.parse(text) as LayerRecord;
      if (!isOfSnapshot(id) && changed.mtimeMs >= idleSince.getTime()) continue;
      if (await this.#evict(name)) layers.push(id);
    }
    return { layers, unfinished };
  }

  /** False if a layer of a written use is gone. Collectors that began before the use was written move the layer away, each at most once. */
  async #keep(id: LayerId): Promise<boolean> {
    for (let attempt = 0; attempt < 3; attempt++) {
      if (this.#touch(id)) return true;
      await this.#restore(nameOf(id));
    }
    return this.#touch(id);
  }

  async #evict(name: string): Promise<boolean> {
    const evicted = this.#temporary(`${EVICTED}${name}-`);
    if (!(await moved(join(this.folder, name), evicted))) return false;
    return this.#decide(name, evicted);
  }

  /** Deletes an evicted layer, or moves it back if it is used. A user may move it back first: only one of the renames succeeds. */
  async #decide(name: string, evicted: string): Promise<boolean> {
    if ((await this.#used()).has(name)) {
      if (!(await moved(evicted, join(this.folder, name)))) await this.#delete(evicted);
      return false;
    }
    return this.#delete(evicted);
  }

  async #delete(path: string): Promise<boolean> {
    const part = this.#temporary(PART);
    if (!(await moved(path, part))) return false;
    await removeTree(part);
    return true;
  }

  async #restore(name: string): Promise<void> {
    for (const other of await readdir(this.folder))
      if (other.startsWith(`${EVICTED}${name}-`)) await moved(join(this.folder, other), join(this.folder, name));
  }

  async #removeUnfinished(): Promise<number> {
    let removed = 0;
    for (const name of await readdir(this.folder)) {
      const [, evicted, pid, start = ""] = /^\.(?:part|evicted-([0-9a-f]+))-([0-9]+)_(.*)_[0-9a-f]+$/.exec(name) ?? [];
      if (pid === undefined || isRunning(this.#processes, { pid: Number(pid), start })) continue;
      removed++;
      if (evicted === undefined) await this.#delete(join(this.folder, name));
      else await this.#decide(evicted, join(this.folder, name));
    }
    return removed;
  }

  /** The names of all layers in use. */
  async #used(): Promise<Set<string>> {
    for (;;) {
      const uses = await Promise.all((await this.holders()).map((holder) => this.#usedBy(holder)));
      // A holder that ended meanwhile may have passed its layers on to one that was not listed yet.
      if (!uses.includes(null)) return new Set(uses.flatMap((ids) => (ids ?? []).map(nameOf)));
    }
  }

  /** Null if it uses none. */
  async #usedBy(holder: string): Promise<readonly LayerId[] | null> {
    const text = await readFile(this.#useOf(holder), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    return text === null ? null : (JSON.parse(text) as LayerId[]);
  }

  async #publish(id: LayerId, part: string): Promise<boolean> {
    await writeFile(join(part, RECORD), JSON.stringify({ id } satisfies LayerRecord));
    return moved(part, join(this.folder, nameOf(id)));
  }

  #touch(id: LayerId): boolean {
    if (!this.has(id)) return false;
    const now = new Date();
    try {
      utimesSync(this.#recordOf(id), now, now);
      return true;
    } catch {
      return false;
    }
  }

  #recordOf(id: LayerId): string {
    return join(this.folder, nameOf(id), RECORD);
  }

  #temporary(prefix: string): string {
    return join(this.folder, `${prefix}${this.#self}_${randomBytes(6).toString("hex")}`);
  }

  #useOf(holder: string): string {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(holder))
      throw new PlatformError("request.invalid", `'${holder}' is not an id of a sandbox`);
    return join(this.#uses, holder);
  }
}

export function isOfSnapshot(id: LayerId): boolean {
  return id.startsWith(SNAPSHOT);
}

/** Short, because the options of a mount have a limited length; `has` compares the whole id. */
function nameOf(id: LayerId): string {
  const [, name] = /^(?:sha256|snapshot):([0-9a-f]{32})(?:[0-9a-f]{32})?$/.exec(id) ?? [];
  if (name === undefined) throw new PlatformError("request.invalid", `'${id}' is not an id of a layer`);
  return name;
}

/** False if the source is gone or the target exists: another process was faster. */
async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (["ENOENT", "ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}
