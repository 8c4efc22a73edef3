import { PlatformError } from "@aenv/contract";
import type { SandboxEngine, SandboxSnapshot } from "@aenv/sandbox";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import type { SnapshotContent } from "./content.ts";
import type { ReadySnapshot } from "./row.ts";

export interface LocalCopiesOptions {
  readonly engine: SandboxEngine;
  readonly content: SnapshotContent;
  readonly space: SnapshotSpace;
  /** A copy that was not used for this long is removed; the next start imports it again. */
  readonly idleMs: number;
  readonly now: () => number;
}

interface Copy {
  /** The id in the engine. */
  readonly local: Promise<string>;
  uses: number;
  usedAt: number;
  isDropped: boolean;
}

/**
 * Snapshots in the engine of this server, from which sandboxes start. What was taken here is there already; what another server has stored
 * is imported at the first use. They are lost with this process, and the content stays.
 */
export class LocalCopies {
  readonly #options: LocalCopiesOptions;
  readonly #copies = new Map<string, Copy>();
  readonly #stop = new AbortController();

  constructor(options: LocalCopiesOptions) {
    this.#options = options;
    options.space.setCache(() => this.#dropUnused());
  }

  /** A snapshot that this server has just taken. */
  add(id: string, local: string): void {
    this.#copies.set(id, { local: Promise.resolve(local), uses: 0, usedAt: this.#options.now(), isDropped: false });
  }

  /** Calls `work` with the id of the snapshot in the engine, which stays until it ends. */
  async use<T>(snapshot: ReadySnapshot, work: (local: string) => Promise<T>): Promise<T> {
    const copy = this.#copies.get(snapshot.id) ?? this.#begin(snapshot);
    copy.uses++;
    try {
      return await work(await copy.local);
    } finally {
      copy.uses--;
      copy.usedAt = this.#options.now();
      if (copy.isDropped) await this.#remove(copy);
    }
  }

  /** Removes the copy of a deleted snapshot; one that is in use, afterwards. */
  async drop(id: string): Promise<void> {
    const copy = this.#copies.get(id);
    if (copy === undefined) return;
    this.#copies.delete(id);
    copy.isDropped = true;
    await this.#remove(copy);
  }

  /** Removes copies that are idle, and those of snapshots that another server has deleted. */
  async trim(isStored: (id: string) => Promise<boolean>): Promise<void> {
    const { now, idleMs } = this.#options;
    for (const [id, copy] of [...this.#copies])
      if ((copy.uses === 0 && now() - copy.usedAt > idleMs) || !(await isStored(id))) await this.drop(id);
  }

  async close(): Promise<void> {
    this.#stop.abort(new PlatformError("server.draining", "the server is shutting down"));
    for (const id of [...this.#copies.keys()]) await this.drop(id);
  }

  /** False if all are in use. */
  async #dropUnused(): Promise<boolean> {
    const unused = [...this.#copies].filter(([, { uses }]) => uses === 0);
    for (const [id] of unused) await this.drop(id);
    return unused.length > 0;
  }

  /** All that need the snapshot wait for one import, so it does not end with a request. */
  #begin(snapshot: ReadySnapshot): Copy {
    const imported = this.#options.space.use(() => this.#import(snapshot)).then(({ id }) => id);
    const copy: Copy = { local: imported, uses: 0, usedAt: this.#options.now(), isDropped: false };
    this.#copies.set(snapshot.id, copy);
    imported.catch(() => {
      if (this.#copies.get(snapshot.id) === copy) this.#copies.delete(snapshot.id);
    });
    return copy;
  }

  async #import({ name, parts: stored, facts }: ReadySnapshot): Promise<SandboxSnapshot> {
    const { engine, content } = this.#options;
    if (engine.snapshots === undefined)
      throw new PlatformError(
        "sandbox.unsupported",
        `the engine '${engine.name}' of this server starts nothing from the snapshot '${name}'`,
      );
    const parts = stored.filter((part) => !part.name.startsWith(STATE));
    const digests = new Map(parts.map((part) => [part.name, part.digest]));
    const description = { facts, parts: parts.map(({ name }) => ({ name })) };
    return engine.snapshots.import(description, (part) => content.open(digests.get(part.name) ?? ""), this.#stop.signal);
  }

  async #remove(copy: Copy): Promise<void> {
    if (copy.uses > 0) return;
    const local = await copy.local.catch(() => null);
    // A copy that is left costs disk space only, until this process ends.
    if (local !== null) await this.#options.engine.snapshots?.remove(local).catch(() => {});
  }
}

/** Begins the name of the part with the state of the environment, which no engine reads. */
export const STATE = "state ";
