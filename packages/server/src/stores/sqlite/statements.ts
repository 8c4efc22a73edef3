import type { Database } from "better-sqlite3";

/** A row of a list. */
export interface ListedRow {
  readonly key: string;
  readonly rev: number;
  readonly value: string;
}

/** The fields of a replaced row that a change needs. */
export interface StoredRow {
  readonly id: number;
  readonly rev: number;
  readonly indexes: string;
}

export type Statements = ReturnType<typeof prepare>;

/** Every SQL statement, prepared once. Every WHERE uses a prefix of a primary key or unique index. */
export function prepare(db: Database) {
  return {
    get: db.prepare<[kind: string, key: string], ListedRow>("SELECT key, rev, value FROM rows WHERE kind = ? AND key = ?"),
    find: db.prepare<[kind: string, key: string], StoredRow>("SELECT id, rev, indexes FROM rows WHERE kind = ? AND key = ?"),
    nextRev: db.prepare<[], number>("UPDATE revision SET last = last + 1 RETURNING last").pluck(),
    insert: db.prepare<[kind: string, key: string, rev: number, value: string, indexes: string]>(
      "INSERT INTO rows (kind, key, rev, value, indexes) VALUES (?, ?, ?, ?, ?)",
    ),
    update: db.prepare<[rev: number, value: string, indexes: string, id: number]>(
      "UPDATE rows SET rev = ?, value = ?, indexes = ? WHERE id = ?",
    ),
    remove: db.prepare<[id: number]>("DELETE FROM rows WHERE id = ?"),
    addIndex: db.prepare<[kind: string, name: string, value: string, key: string, row: number]>(
      "INSERT INTO indexed VALUES (?, ?, ?, ?, ?)",
    ),
    removeIndex: db.prepare<[kind: string, name: string, value: string, key: string]>(
      "DELETE FROM indexed WHERE kind = ? AND name = ? AND value = ? AND key = ?",
    ),
    count: db
      .prepare<[kind: string, name: string, value: string], number>("SELECT rows FROM counts WHERE kind = ? AND name = ? AND value = ?")
      .pluck(),
    // The empty string is a valid key, so the first page needs its own statement.
    list: db.prepare<[kind: string, limit: number], ListedRow>("SELECT key, rev, value FROM rows WHERE kind = ? ORDER BY key LIMIT ?"),
    listAfter: db.prepare<[kind: string, after: string, limit: number], ListedRow>(
      "SELECT key, rev, value FROM rows WHERE kind = ? AND key > ? ORDER BY key LIMIT ?",
    ),
    listWhere: db.prepare<[kind: string, name: string, value: string, limit: number], ListedRow>(
      `SELECT rows.key, rows.rev, rows.value FROM indexed JOIN rows ON rows.id = indexed.row
       WHERE indexed.kind = ? AND indexed.name = ? AND indexed.value = ? ORDER BY indexed.key LIMIT ?`,
    ),
    listWhereAfter: db.prepare<[kind: string, name: string, value: string, after: string, limit: number], ListedRow>(
      `SELECT rows.key, rows.rev, rows.value FROM indexed JOIN rows ON rows.id = indexed.row
       WHERE indexed.kind = ? AND indexed.name = ? AND indexed.value = ? AND indexed.key > ? ORDER BY indexed.key LIMIT ?`,
    ),
  };
}
