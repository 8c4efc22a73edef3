import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { checkQuery, checkRow, checkText, decode, encode, sortedIndexes } from "../row.ts";
import type { Indexes, InsertOptions, InsertResult, ListOptions, Store, Versioned } from "../store.ts";
import { damaged, explain } from "./errors.ts";
import { migrate } from "./migrations.ts";
import { type ListedRow, prepare, type Statements, type StoredRow } from "./statements.ts";

export interface SqliteOptions {
  /** How long a change waits for another process's change; this process is blocked meanwhile. */
  readonly busyTimeoutMs?: number;
}

/**
 * One file. A change is handed to the operating system when its promise resolves: it survives the end of this process. A power
 * failure may lose the last changes, but never leaves half a change (WAL, `synchronous=NORMAL`).
 */
export class SqliteStore implements Store {
  readonly name = "sqlite";
  readonly #db: Database.Database;
  readonly #statements: Statements;
  readonly #write: (work: () => unknown) => unknown;

  /** Opens or creates the file, and migrates it to the latest version. */
  static open(path: string, { busyTimeoutMs = 5_000 }: SqliteOptions = {}): SqliteStore {
    let db: Database.Database | undefined;
    try {
      mkdirSync(dirname(path), { recursive: true });
      // It contains tokens and variables, so only its owner may read it; SQLite gives its other files the same mode.
      closeSync(openSync(path, "a", 0o600));
      db = new Database(path, { timeout: busyTimeoutMs });
      db.pragma("journal_mode = WAL");
      db.pragma("synchronous = NORMAL");
      // What is removed or replaced is overwritten: rows of rollouts hold keys of models until they are done.
      db.pragma("secure_delete = ON");
      // A checkpoint waits for the disk: fewer, larger ones block less often.
      db.pragma("wal_autocheckpoint = 4000");
      const found = db.pragma("quick_check(1)", { simple: true });
      if (found !== "ok") throw damaged(path, String(found));
      migrate(db);
      return new SqliteStore(db);
    } catch (error) {
      db?.close();
      throw explain(error, path);
    }
  }

  private constructor(db: Database.Database) {
    this.#db = db;
    this.#statements = prepare(db);
    // Takes the write lock at the start: a transaction that begins with a read cannot wait for another process's change.
    this.#write = db.transaction((work: () => unknown) => work()).immediate;
  }

  async get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    checkText(kind, key);
    const row = this.#try(() => this.#statements.get.get(kind, key));
    return row === undefined ? null : versioned<T>(row);
  }

  async insert<T>(kind: string, key: string, value: T, indexes: Indexes, options: InsertOptions = {}): Promise<InsertResult> {
    checkRow(kind, key, indexes);
    const text = encode(value);
    const { limit } = options;
    return this.#change(({ find, insert, nextRev, addIndex }) => {
      if (find.get(kind, key) !== undefined) return "exists";
      if (limit !== undefined && this.#count(kind, limit) >= limit.max) return "limit";
      const entries = sortedIndexes(indexes);
      const { lastInsertRowid } = insert.run(kind, key, nextRev.get() as number, text, JSON.stringify(entries));
      for (const [name, indexValue] of entries) addIndex.run(kind, name, indexValue, key, Number(lastInsertRowid));
      return "inserted";
    });
  }

  async swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean> {
    checkRow(kind, key, indexes);
    const text = encode(value);
    return this.#change(({ find, update, nextRev, addIndex, removeIndex }) => {
      const row = find.get(kind, key);
      if (row?.rev !== rev) return false;
      const entries = sortedIndexes(indexes);
      const entriesText = JSON.stringify(entries);
      update.run(nextRev.get() as number, text, entriesText, row.id);
      if (entriesText === row.indexes) return true;
      // Most changes affect one or two of many index entries.
      const [before, after] = [new Map<string, string>(JSON.parse(row.indexes)), new Map(entries)];
      for (const [name, was] of before) if (after.get(name) !== was) removeIndex.run(kind, name, was, key);
      for (const [name, is] of after) if (before.get(name) !== is) addIndex.run(kind, name, is, key, row.id);
      return true;
    });
  }

  async remove(kind: string, key: string, rev?: number): Promise<boolean> {
    checkText(kind, key);
    return this.#change(({ find, remove }) => {
      const row = find.get(kind, key);
      if (row === undefined || (rev !== undefined && row.rev !== rev)) return false;
      this.#unlist(kind, key, row);
      remove.run(row.id);
      return true;
    });
  }

  async list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]> {
    checkQuery(kind, options);
    const { where, after, limit } = options;
    return this.#try(() => {
      const { list, listAfter, listWhere, listWhereAfter } = this.#statements;
      if (where === undefined) return after === undefined ? list.all(kind, limit) : listAfter.all(kind, after, limit);
      const { index, value } = where;
      return after === undefined ? listWhere.all(kind, index, value, limit) : listWhereAfter.all(kind, index, value, after, limit);
    }).map(versioned<T>);
  }

  async count(kind: string, where: { readonly index: string; readonly value: string }): Promise<number> {
    checkQuery(kind, { where });
    return this.#try(() => this.#count(kind, where));
  }

  /** The log holds earlier versions of rows until it is written over. */
  async scrub(): Promise<boolean> {
    const [result] = this.#try(() => this.#db.pragma("wal_checkpoint(TRUNCATE)")) as { readonly busy: number }[];
    return result?.busy === 0;
  }

  async ping(): Promise<void> {
    this.#try(() => this.#statements.get.get("", ""));
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #count(kind: string, { index, value }: { readonly index: string; readonly value: string }): number {
    return this.#statements.count.get(kind, index, value) ?? 0;
  }

  #unlist(kind: string, key: string, row: StoredRow): void {
    const entries: readonly [string, string][] = JSON.parse(row.indexes);
    for (const [name, value] of entries) this.#statements.removeIndex.run(kind, name, value, key);
  }

  #change<R>(work: (statements: Statements) => R): R {
    return this.#try(() => this.#write(() => work(this.#statements)) as R);
  }

  #try<R>(work: () => R): R {
    try {
      return work();
    } catch (error) {
      throw explain(error, this.#db.name);
    }
  }
}

function versioned<T>({ key, rev, value }: ListedRow): Versioned<T> {
  return { key, rev, value: decode<T>(value) };
}
