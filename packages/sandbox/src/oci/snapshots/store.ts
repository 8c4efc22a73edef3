import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type CapabilitySet, PlatformError } from "@aenv/contract";
import type { SandboxRuntime, SnapshotFidelity } from "../../engine/engine.ts";
import { launch } from "../../host/launcher.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "../../host/process-table.ts";
import { Records } from "../../host/records.ts";
import { isOfSnapshot, type LayerId, type LayerStore } from "../../images/layers.ts";
import { type FixedLimits, homeKey, type RootFiles } from "../container.ts";

/** What a sandbox is started from again. It has no variables of the environment; a memory snapshot has those of its processes. */
export interface SnapshotRecord {
  readonly format: 1;
  readonly id: string;
  /** The process that stores it. */
  readonly maker: ProcessIdentity;
  readonly fidelity: SnapshotFidelity;
  readonly createdAt: string;
  /** Size on disk of what was stored for it: changed files, and memory. Null until it is complete. */
  readonly bytes: number | null;
  /** What is expected of one that is not complete. Missing in records of earlier versions, and if it is not known. */
  readonly expectedBytes?: number;
  /**
   * Sizes on disk of the layers of snapshots among its files. It keeps those of removed snapshots too, so they count as long as it is there. Missing in
   * records of earlier versions.
   */
  readonly layerBytes?: LayerBytes;
  readonly runtime: SandboxRuntime;
  readonly files: RootFiles;
  /** Null for a snapshot of files. */
  readonly memory: MemoryFacts | null;
}

export type LayerBytes = Readonly<Record<LayerId, number>>;

/** What was stored for a snapshot. */
export interface Filled {
  readonly files: RootFiles;
  /** Null if it is the size of the layers of snapshots among its files. */
  readonly bytes: number | null;
  /** Bytes of layers whose size is known already. */
  readonly layerBytes?: LayerBytes;
}

/** What processes were stored with, which must be the same for the copies. */
export interface MemoryFacts extends FixedLimits {
  /** The number of the main program in the init; null if there is none. */
  readonly program: number | null;
  /** Missing in records of earlier versions: `minimal`. */
  readonly capabilities?: CapabilitySet;
  /** The init that runs in it. */
  readonly initPath: string;
  /** Connections to other machines, which the copies do not have. */
  readonly cut: readonly string[];
}

export type CompleteSnapshot = SnapshotRecord & { readonly bytes: number };

export interface SnapshotStoreOptions {
  readonly folder: string;
  readonly layers: LayerStore;
  /** All snapshots together. */
  readonly maxBytes: number;
  /** What stays free on the disk when files are unpacked; null for the default. */
  readonly freeDiskBytes?: number | null;
  readonly self: ProcessIdentity;
  readonly processes: ProcessTable;
}

/** A snapshot that is being stored. */
export interface NewSnapshot {
  readonly memoryFolder: string;
  /** Uses its layers. */
  readonly holder: string;
  /** Called before anything is copied, if the size is known: refuses what is too large. */
  expect(bytes: number): void;
}

/** The snapshots that the processes of one home have taken and not removed: layers of files that sandboxes share, and images of memory. */
export class SnapshotStore {
  readonly #options: SnapshotStoreOptions;
  readonly #homeKey: string;
  readonly #records: Records<SnapshotRecord>;

  constructor(options: SnapshotStoreOptions) {
    this.#options = options;
    this.#homeKey = homeKey(options.folder);
    this.#records = new Records(options.folder, { noun: "snapshot", format: 1, self: options.self });
  }

  /**
   * Stores a snapshot that `fill` completes: it writes memory into the folder, and returns the layers of the files. New layers must be used by the holder before
   * they appear. If it fails, or the snapshot is too large, nothing is left.
   */
  async add(
    about: Pick<SnapshotRecord, "fidelity" | "runtime" | "memory">,
    fill: (snapshot: NewSnapshot) => Promise<Filled>,
  ): Promise<CompleteSnapshot> {
    const { layers, self } = this.#options;
    const id = randomBytes(12).toString("hex");
    const started: SnapshotRecord = {
      ...about,
      format: 1,
      id,
      maker: self,
      createdAt: new Date().toISOString(),
      bytes: null,
      files: { layers: [], config: null },
    };
    this.#records.create(id, started);
    try {
      this.#assertFits(started);
      const holder = this.#holderOf(id);
      const expect = (expectedBytes: number) => {
        const expected = { ...started, expectedBytes };
        this.#assertFits(expected);
        this.#records.write(id, expected);
      };
      const { files, bytes: own, layerBytes: known = {} } = await fill({ memoryFolder: this.memoryFolder(id), holder, expect });
      await layers.use(holder, files.layers);
      const layerBytes = await this.#layerBytesOf(files, known);
      const complete = { ...started, files, bytes: own ?? sumOf(Object.values(layerBytes)), layerBytes };
      this.#assertFits(complete);
      this.#records.write(id, complete);
      return complete;
    } catch (error) {
      await this.remove(id);
      throw error;
    }
  }

  get freeDiskBytes(): number | null {
    return this.#options.freeDiskBytes ?? null;
  }

  memoryFolder(id: string): string {
    return join(this.#records.folderOf(id), "memory");
  }

  get(id: string): CompleteSnapshot {
    const found = isId(id) ? this.#records.find(id) : null;
    if (found === null || !isComplete(found))
      throw new PlatformError("snapshot.not_found", `there is no snapshot '${id}' on this server; it may have been removed`);
    return found;
  }

  /** The highest layer of its files, if that is one of a snapshot; else null. */
  highestLayerOf(id: string): LayerId | null {
    const layer = (isId(id) ? this.#records.find(id) : null)?.files.layers.at(-1);
    return layer !== undefined && isOfSnapshot(layer) ? layer : null;
  }

  list(): readonly CompleteSnapshot[] {
    return this.#records.ids().flatMap((id) => {
      const found = this.#records.find(id);
      return found !== null && isComplete(found) ? [found] : [];
    });
  }

  /** Idempotent. Sandboxes that were started from it have their own copy of the memory, and use its layers, which are deleted with the last of them. */
  async remove(id: string): Promise<void> {
    if (!isId(id)) return;
    await this.#records.remove(id);
    await this.#options.layers.release(this.#holderOf(id));
  }

  /** Removes the snapshots of processes that have ended: nobody knows their ids any more. */
  async collect(): Promise<void> {
    const { processes } = this.#options;
    await this.#records.removeParts(processes);
    for (const id of this.#records.ids()) {
      const found = this.#records.find(id);
      if (found === null || !isRunning(processes, found.maker)) await this.remove(id);
    }
    const kept = new Set(this.#records.ids().map((id) => this.#holderOf(id)));
    for (const holder of await this.#options.layers.holders())
      if (holder.startsWith(this.#holderOf("")) && !kept.has(holder)) await this.#options.layers.release(holder);
  }

  /** Layers can be shared by several homes, each of which removes its own uses only. */
  #holderOf(id: string): string {
    return `snapshot-${this.#homeKey}-${id}`;
  }

  /** Layers never change, so each is measured once. */
  async #layerBytesOf({ layers: ids }: RootFiles, measured: LayerBytes): Promise<LayerBytes> {
    const { layers } = this.#options;
    const known: LayerBytes = { ...Object.assign({}, ...this.list().map(({ layerBytes }) => layerBytes)), ...measured };
    const sizes: Record<LayerId, number> = {};
    for (const id of ids) if (isOfSnapshot(id)) sizes[id] = known[id] ?? (await diskBytes([join(layers.folder, layers.filesOf(id))]));
    return sizes;
  }

  /** Others count from the moment in which their size is known. */
  #assertFits(one: SnapshotRecord): void {
    const { maxBytes } = this.#options;
    const others = this.#records.ids().flatMap((id) => (id === one.id ? [] : (this.#records.find(id) ?? [])));
    const [before, after] = [usedBytes(others), usedBytes([...others, one])];
    if (after <= maxBytes) return;
    const mb = (count: number) => Math.ceil(count / 2 ** 20);
    throw new PlatformError(
      "quota.exceeded",
      `snapshot ${one.id} has ${mb(after - before)} MB, and the others on this server ${mb(before)} MB of ${mb(maxBytes)} MB; remove snapshots that are not needed, or raise the server's setting snapshotSpaceMb`,
    );
  }
}

/** What snapshots take on disk: memory, and each layer of files once. */
function usedBytes(records: readonly SnapshotRecord[]): number {
  const layers: Record<LayerId, number> = Object.assign({}, ...records.map(({ layerBytes }) => layerBytes));
  const own = records.map(({ bytes, expectedBytes = 0, memory, layerBytes }) => {
    if (bytes === null) return expectedBytes;
    return memory !== null || layerBytes === undefined ? bytes : 0;
  });
  return sumOf(own) + sumOf(Object.values(layers));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

function isId(id: string): boolean {
  return /^[0-9a-f]{24}$/.test(id);
}

function isComplete(record: SnapshotRecord): record is CompleteSnapshot {
  return record.bytes !== null;
}

/** Bytes on disk of folders and files. */
export async function diskBytes(paths: readonly string[]): Promise<number> {
  const { exitCode, stdout, stderr } = await launch({ argv: ["du", "--summarize", "--total", "--block-size=1", ...paths] });
  if (exitCode === 0) return Number.parseInt(stdout.toString().trim().split("\n").at(-1) ?? "", 10);
  throw new PlatformError("internal", `the size of ${paths.join(", ")} could not be measured: ${stderr.toString().trim()}`);
}
