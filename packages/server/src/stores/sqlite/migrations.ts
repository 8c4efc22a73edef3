import { PlatformError } from "@aenv/contract";
import type { Database } from "better-sqlite3";

export interface Migration {
  /** A description, stored in the version table. */
  readonly makes: string;
  readonly sql: string;
}

/**
 * Applied once each, in this order; step 2 leads to version 2. A released step never changes: a correction is a new step.
 */
export const migrations: readonly Migration[] = [
  {
    makes: "rows, found by kind and key or by an index value",
    sql: `
      CREATE TABLE rows (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL, key TEXT NOT NULL, rev INTEGER NOT NULL, value TEXT NOT NULL, indexes TEXT NOT NULL,
        UNIQUE (kind, key)
      ) STRICT;
      CREATE TABLE indexed (
        kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, key TEXT NOT NULL, row INTEGER NOT NULL,
        PRIMARY KEY (kind, name, value, key)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE revision (last INTEGER NOT NULL) STRICT;
      INSERT INTO revision VALUES (0);`,
  },
  {
    // Limits are checked on every insert; without this table counting would take longer with every row.
    makes: "the number of rows with an index value, kept by triggers",
    sql: `
      CREATE TABLE counts (
        kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, rows INTEGER NOT NULL,
        PRIMARY KEY (kind, name, value)
      ) STRICT, WITHOUT ROWID;
      INSERT INTO counts SELECT kind, name, value, count(*) FROM indexed GROUP BY kind, name, value;
      CREATE TRIGGER count_more AFTER INSERT ON indexed BEGIN
        INSERT INTO counts VALUES (new.kind, new.name, new.value, 1)
          ON CONFLICT DO UPDATE SET rows = rows + 1;
      END;
      CREATE TRIGGER count_less AFTER DELETE ON indexed BEGIN
        UPDATE counts SET rows = rows - 1 WHERE kind = old.kind AND name = old.name AND value = old.value;
        DELETE FROM counts WHERE kind = old.kind AND name = old.name AND value = old.value AND rows = 0;
      END;`,
  },
  {
    // Instances of earlier builds name their server and sandbox in other fields. They are not adopted: recovery destroys their sandboxes.
    makes: "no instances and servers of earlier builds",
    sql: `
      DELETE FROM indexed WHERE kind IN ('instance', 'replica');
      DELETE FROM rows WHERE kind IN ('instance', 'replica');`,
  },
];

/** Migrates a database to the latest version in one transaction, also if several processes open it at once. */
export function migrate(db: Database, steps: readonly Migration[] = migrations): void {
  if (versionOf(db) === steps.length) return;
  db.transaction(() => {
    const version = versionOf(db);
    if (version > steps.length) {
      throw new PlatformError(
        "store.invalid",
        `${db.name} has version ${version}, but this server supports versions up to ${steps.length}: it was used by a newer server. ` +
          "Run that server, or give this one another file.",
      );
    }
    if (version === 0) {
      refuseForeign(db);
      db.exec("CREATE TABLE versions (version INTEGER PRIMARY KEY, makes TEXT NOT NULL, since TEXT NOT NULL) STRICT");
    }
    const note = db.prepare("INSERT INTO versions VALUES (?, ?, datetime('now'))");
    for (const [index, { makes, sql }] of steps.entries()) {
      if (index < version) continue;
      db.exec(sql);
      note.run(index + 1, makes);
    }
  }).immediate();
}

/** 0 for a new file. */
export function versionOf(db: Database): number {
  const isOurs = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'versions'").get() !== undefined;
  return isOurs ? (db.prepare<[], number>("SELECT coalesce(max(version), 0) FROM versions").pluck().get() ?? 0) : 0;
}

function refuseForeign(db: Database): void {
  const table = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1").pluck().get();
  if (table === undefined) return;
  throw new PlatformError("store.invalid", `${db.name} is a database of another program (it has a table '${table}'): choose another file`);
}
