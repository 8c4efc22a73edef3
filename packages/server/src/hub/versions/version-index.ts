import { Collection } from "../../stores/collection.ts";
import type { InsertOptions, InsertResult, Store, Versioned } from "../../stores/store.ts";
import { type VersionRow, versionIndexes, versionKey } from "./environment-version.ts";
import { byNewest } from "./order.ts";

/** What a search needs of a version: everything but its history, and the text in which words are looked for. */
export interface IndexedVersion extends Omit<VersionRow, "history"> {
  readonly text: string;
}

interface ChangeCount {
  readonly changes: number;
}

const KEY = "all";
/** A server that stops between a change and its count leaves the others behind for this long at most. */
const MAX_AGE_MS = 30_000;

/**
 * All versions that are not removed, in memory and in order, so that a search reads one row of the store instead of every version.
 * That row counts the changes of all servers that share the store: another count than the last one seen means that another server
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

  /** By name, and the newest version of a name first. */
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

  /** Counts a change of this server, after it was written; null for a row that is gone. */
  async note(key: string, row: VersionRow | null): Promise<void> {
    try {
      const changes = await this.#count();
      const isNext = this.#versions !== null && changes === this.#changes + 1;
      if (!isNext) return this.#forget();
      if (row === null || row.isRemoved) this.#versions?.delete(key);
      else this.#versions?.set(key, indexed(row));
      this.#sorted = null;
      this.#changes = changes;
    } catch {
      // The change itself is written. The others see it when their copy is too old.
      this.#forget();
    }
  }

  async #read(changes: number): Promise<void> {
    const versions = new Map<string, IndexedVersion>();
    const readAt = this.#clock();
    for await (const { key, value } of this.#rows.each({ index: "all", value: "yes" })) versions.set(key, indexed(value));
    this.#versions = versions;
    this.#sorted = null;
    // The count from before the reading: a change in between makes the next search read again.
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

  #forget(): void {
    this.#versions = null;
    this.#sorted = null;
  }
}

/** The rows of versions; the index is told of each change. */
export class VersionRows extends Collection<VersionRow> {
  readonly index: VersionIndex;

  constructor(store: Store, clock: () => number = () => performance.now()) {
    super(store, "environment", versionIndexes);
    this.index = new VersionIndex(this, store, clock);
  }

  override async insert(key: string, value: VersionRow, options?: InsertOptions): Promise<InsertResult> {
    const result = await super.insert(key, value, options);
    if (result === "inserted") await this.index.note(key, value);
    return result;
  }

  override async swap(row: Versioned<VersionRow>, value: VersionRow): Promise<boolean> {
    const isDone = await super.swap(row, value);
    if (isDone) await this.index.note(row.key, value);
    return isDone;
  }

  override async remove(key: string, rev?: number): Promise<boolean> {
    const isDone = await super.remove(key, rev);
    if (isDone) await this.index.note(key, null);
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
