import { PlatformError } from "@aenv/contract";
import { checkQuery, checkRow, checkText, decode, encode } from "../row.ts";
import type { Indexes, InsertOptions, InsertResult, ListOptions, Store, Versioned } from "../store.ts";
import { SortedKeys } from "./sorted-keys.ts";

interface Row {
  readonly rev: number;
  readonly text: string;
  readonly indexes: Indexes;
}

interface Kind {
  readonly rows: Map<string, Row>;
  readonly keys: SortedKeys;
  /** Keys by the name of the index, then by value. */
  readonly indexes: Map<string, Map<string, SortedKeys>>;
}

/** Rows that several stores of one process share, as servers share a database. */
export class MemoryRows {
  readonly kinds = new Map<string, Kind>();
  /** One counter for all rows, so that a key that is inserted again never repeats a revision. */
  lastRev = 0;
}

/** A store for tests, and for a server without persistence. Each method is synchronous inside, and therefore atomic. */
export class MemoryStore implements Store {
  readonly name = "memory";
  readonly #shared: MemoryRows;
  #isClosed = false;

  constructor(shared: MemoryRows = new MemoryRows()) {
    this.#shared = shared;
  }

  async get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    checkText(kind, key);
    return read<T>(this.#kind(kind), key);
  }

  async insert<T>(kind: string, key: string, value: T, indexes: Indexes, options: InsertOptions = {}): Promise<InsertResult> {
    checkRow(kind, key, indexes);
    const table = this.#kind(kind);
    if (table.rows.has(key)) return "exists";
    const { limit } = options;
    if (limit !== undefined && (table.indexes.get(limit.index)?.get(limit.value)?.size ?? 0) >= limit.max) return "limit";
    this.#write(table, key, encode(value), indexes);
    table.keys.add(key);
    return "inserted";
  }

  async swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean> {
    checkRow(kind, key, indexes);
    const table = this.#kind(kind);
    const row = table.rows.get(key);
    if (row?.rev !== rev) return false;
    const text = encode(value);
    removeFromIndexes(table, key, row.indexes);
    this.#write(table, key, text, indexes);
    return true;
  }

  async remove(kind: string, key: string, rev?: number): Promise<boolean> {
    checkText(kind, key);
    const table = this.#kind(kind);
    const row = table.rows.get(key);
    if (row === undefined || (rev !== undefined && row.rev !== rev)) return false;
    removeFromIndexes(table, key, row.indexes);
    table.rows.delete(key);
    table.keys.delete(key);
    return true;
  }

  async list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]> {
    checkQuery(kind, options);
    const { where, after, limit } = options;
    const table = this.#kind(kind);
    const keys = where === undefined ? table.keys : table.indexes.get(where.index)?.get(where.value);
    const page = keys?.page(after, limit) ?? [];
    return page.flatMap((key) => read<T>(table, key) ?? []);
  }

  async count(kind: string, where: { readonly index: string; readonly value: string }): Promise<number> {
    checkQuery(kind, { where });
    return this.#kind(kind).indexes.get(where.index)?.get(where.value)?.size ?? 0;
  }

  async ping(): Promise<void> {
    if (this.#isClosed) throw new PlatformError("store.unavailable", "this memory store is closed");
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #kind(name: string): Kind {
    if (this.#isClosed) throw new PlatformError("store.unavailable", "this memory store is closed");
    let kind = this.#shared.kinds.get(name);
    if (kind === undefined) {
      kind = { rows: new Map(), keys: new SortedKeys(), indexes: new Map() };
      this.#shared.kinds.set(name, kind);
    }
    return kind;
  }

  #write(table: Kind, key: string, text: string, indexes: Indexes): void {
    this.#shared.lastRev += 1;
    table.rows.set(key, { rev: this.#shared.lastRev, text, indexes: { ...indexes } });
    for (const [name, value] of Object.entries(indexes)) {
      const values = getOrAdd(table.indexes, name, () => new Map<string, SortedKeys>());
      getOrAdd(values, value, () => new SortedKeys()).add(key);
    }
  }
}

function read<T>(table: Kind, key: string): Versioned<T> | null {
  const row = table.rows.get(key);
  return row === undefined ? null : { key, rev: row.rev, value: decode<T>(row.text) };
}

/** Removes a row from its indexes, and index values without rows. */
function removeFromIndexes(table: Kind, key: string, indexes: Indexes): void {
  for (const [name, value] of Object.entries(indexes)) {
    const values = table.indexes.get(name);
    const keys = values?.get(value);
    keys?.delete(key);
    if (keys?.size === 0) values?.delete(value);
  }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
