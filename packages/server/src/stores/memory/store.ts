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
  /** By name, then by value. */
  readonly indexes: Map<string, Map<string, SortedKeys>>;
}

/** What stores of one process can share, as replicas share a database. */
export class MemoryRows {
  readonly kinds = new Map<string, Kind>();
  /** Counts over all rows, so that a key that comes back never repeats a revision. */
  lastRev = 0;
}

/** For tests, and for a server that may forget everything. Each method does its work before it returns: nothing comes between. */
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
    const room = this.#kind(kind);
    if (room.rows.has(key)) return "exists";
    const { limit } = options;
    if (limit !== undefined && (room.indexes.get(limit.index)?.get(limit.value)?.size ?? 0) >= limit.max) return "limit";
    this.#write(room, key, encode(value), indexes);
    room.keys.add(key);
    return "inserted";
  }

  async swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean> {
    checkRow(kind, key, indexes);
    const room = this.#kind(kind);
    const row = room.rows.get(key);
    if (row?.rev !== rev) return false;
    const text = encode(value);
    unlist(room, key, row.indexes);
    this.#write(room, key, text, indexes);
    return true;
  }

  async remove(kind: string, key: string, rev?: number): Promise<boolean> {
    checkText(kind, key);
    const room = this.#kind(kind);
    const row = room.rows.get(key);
    if (row === undefined || (rev !== undefined && row.rev !== rev)) return false;
    unlist(room, key, row.indexes);
    room.rows.delete(key);
    room.keys.delete(key);
    return true;
  }

  async list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]> {
    checkQuery(kind, options);
    const { where, after, limit } = options;
    const room = this.#kind(kind);
    const keys = where === undefined ? room.keys : room.indexes.get(where.index)?.get(where.value);
    const page = keys?.page(after, limit) ?? [];
    return page.flatMap((key) => read<T>(room, key) ?? []);
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

  #write(room: Kind, key: string, text: string, indexes: Indexes): void {
    this.#shared.lastRev += 1;
    room.rows.set(key, { rev: this.#shared.lastRev, text, indexes: { ...indexes } });
    for (const [name, value] of Object.entries(indexes)) {
      const values = getOrAdd(room.indexes, name, () => new Map<string, SortedKeys>());
      getOrAdd(values, value, () => new SortedKeys()).add(key);
    }
  }
}

function read<T>(room: Kind, key: string): Versioned<T> | null {
  const row = room.rows.get(key);
  return row === undefined ? null : { key, rev: row.rev, value: decode<T>(row.text) };
}

/** Takes a row out of its indexes; an index value that nobody has any more goes too. */
function unlist(room: Kind, key: string, indexes: Indexes): void {
  for (const [name, value] of Object.entries(indexes)) {
    const values = room.indexes.get(name);
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
