import { Collection } from "../../stores/collection.ts";
import type { InsertOptions, InsertResult, Store, Versioned } from "../../stores/store.ts";
import { type VersionRow, versionIndexes, versionKey } from "./environment-version.ts";
import { byNewest } from "./order.ts";

/** A version as searches use it: without history, with the text that is searched. */
export interface IndexedVersion extends Omit<VersionRow, "history"> {
  readonly text: string;
}

interface ChangeCount {
  readonly changes: number;
}

const KEY = "all";
/** If a server stops between a change and its count, the other servers' indexes are stale for at most this long. */
const MAX_AGE_MS = 30_000;

/**
 * All versions that are not removed, sorted in memory, so that a search reads one row of the store instead of every version.
 * That row counts the changes of all servers that share the store. If the count differs from the last one seen, another server
 * changed something, and the versions are read again.
 */
export class VersionIndex {
  readonly #rows: Collection<VersionRow>;
  readonly #counts: Collection<ChangeCount>;
  readonly #clock: () => number;
  #versions: Map<string, IndexedVersion> | null = null;
  #sorted: readonly IndexedVersion[] | null = null;
  #changes = -1;
  #readAt = 0;
  #reading: Promise<void> | null = null;

  constructor(rows: Collection<VersionRow>, store: Store, clock: () => number) {
    this.#rows = rows;
    this.#counts = new Collection<ChangeCount>(store, "environment-changes", () => ({}));
    this.#clock = clock;
  }

  /** Sorted by name, newest version first. */
  async sorted(): Promise<readonly IndexedVersion[]> {
    const changes = (await this.#counts.find(KEY))?.value.changes ?? 0;
    const isCurrent = this.#versions !== null && changes === this.#changes && this.#clock() - this.#readAt < MAX_AGE_MS;
    if (!isCurrent) {
      this.#reading ??= this.#read(changes).finally(() => {
        this.#reading = null;
      });
      await this.#reading;
    }
    this.#sorted ??= [...(this.#versions ?? new Map<string, IndexedVersion>()).values()].sort(inOrder);
    return this.#sorted;
  }

  /** Counts a change of this server after it was written; null for a deleted row. */
  async recordChange(key: string, row: VersionRow | null): Promise<void> {
    try {
      const changes = await this.#count();
      const isNext = this.#versions !== null && changes === this.#changes + 1;
      if (!isNext) return this.#invalidate();
      if (row === null || row.isRemoved) this.#versions?.delete(key);
      else this.#versions?.set(key, indexed(row));
      this.#sorted = null;
      this.#changes = changes;
    } catch {
      // The change itself is written. Other servers see it when their index expires.
      this.#invalidate();
    }
  }

  async #read(changes: number): Promise<void> {
    const versions = new Map<string, IndexedVersion>();
    const readAt = this.#clock();
    for await (const { key, value } of this.#rows.each({ index: "all", value: "yes" })) versions.set(key, indexed(value));
    this.#versions = versions;
    this.#sorted = null;
    // The count from before the read: a change during the read makes the next search read again.
    this.#changes = changes;
    this.#readAt = readAt;
  }

  async #count(): Promise<number> {
    for (;;) {
      const updated = await this.#counts.update(KEY, ({ changes }) => ({ changes: changes + 1 }));
      if (updated !== null) return updated.changes;
      if ((await this.#counts.insert(KEY, { changes: 1 })) === "inserted") return 1;
    }
  }

  #invalidate(): void {
    this.#versions = null;
    this.#sorted = null;
  }
}

/** The rows of versions. Each change also updates the index. */
export class VersionRows extends Collection<VersionRow> {
  readonly index: VersionIndex;

  constructor(store: Store, clock: () => number = () => performance.now()) {
    super(store, "environment", versionIndexes);
    this.index = new VersionIndex(this, store, clock);
  }

  override async insert(key: string, value: VersionRow, options?: InsertOptions): Promise<InsertResult> {
    const result = await super.insert(key, value, options);
    if (result === "inserted") await this.index.recordChange(key, value);
    return result;
  }

  override async swap(row: Versioned<VersionRow>, value: VersionRow): Promise<boolean> {
    const isDone = await super.swap(row, value);
    if (isDone) await this.index.recordChange(row.key, value);
    return isDone;
  }

  override async remove(key: string, rev?: number): Promise<boolean> {
    const isDone = await super.remove(key, rev);
    if (isDone) await this.index.recordChange(key, null);
    return isDone;
  }
}

function indexed({ history: _, ...row }: VersionRow): IndexedVersion {
  return { ...row, text: [row.name, row.description, ...row.tags].join("\n").toLowerCase() };
}

function inOrder(one: IndexedVersion, other: IndexedVersion): number {
  return one.name === other.name ? byNewest(one, other) : one.name < other.name ? -1 : 1;
}

export function keyOf({ name, version }: IndexedVersion): string {
  return versionKey(name, version);
}
