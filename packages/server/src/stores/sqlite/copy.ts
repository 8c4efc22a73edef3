import { closeSync, openSync } from "node:fs";
import { PlatformError } from "@aenv/contract";
import Database from "better-sqlite3";
import { decode } from "../row.ts";
import { damaged, explain } from "./errors.ts";
import { migrations, versionOf } from "./migrations.ts";

/**
 * Writes the state of a database at one moment into a new file, while other processes read and change it. It is one read transaction, so
 * it neither waits for their changes nor begins again after them, and it leaves out what was deleted.
 */
export function copyDatabase(from: string, to: string): void {
  let db: Database.Database | undefined;
  try {
    db = new Database(from, { readonly: true, fileMustExist: true, timeout: 30_000 });
    // Only its owner may read it. SQLite accepts an existing file that is empty.
    closeSync(openSync(to, "wx", 0o600));
    db.prepare("VACUUM INTO ?").run(to);
  } catch (error) {
    throw explain(error, from);
  } finally {
    db?.close();
  }
}

/** Reads a database that no server uses. Unlike a store, it never changes the file, not even its version. */
export class DatabaseReader implements Disposable {
  readonly #db: Database.Database;

  /** Checks the whole file. */
  constructor(path: string) {
    let db: Database.Database | undefined;
    try {
      db = new Database(path, { readonly: true, fileMustExist: true });
      const found = db.pragma("integrity_check(1)", { simple: true });
      if (found !== "ok") throw damaged(path, String(found));
      const version = versionOf(db);
      if (version === 0) throw new PlatformError("store.invalid", `${path} is not the store of a server`);
      if (version > migrations.length)
        throw new PlatformError(
          "store.invalid",
          `${path} has version ${version}, but this command supports versions up to ${migrations.length}: use the aenv of that server`,
        );
      this.#db = db;
    } catch (error) {
      db?.close();
      throw explain(error, path);
    }
  }

  /** The values of all rows of a kind. */
  *values<T>(kind: string): Generator<T> {
    const rows = this.#db.prepare<[string], string>("SELECT value FROM rows WHERE kind = ?").pluck();
    for (const value of rows.iterate(kind)) yield decode<T>(value);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
