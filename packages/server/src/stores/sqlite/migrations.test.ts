import { temporaryTree } from "@aenv/testing";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { migrate, migrations } from "./migrations.ts";
import { SqliteStore } from "./store.ts";

/** A file of version 1 with two rows. */
function writeVersion1(path: string): void {
  const db = new Database(path);
  migrate(db, migrations.slice(0, 1));
  const addRow = db.prepare("INSERT INTO rows VALUES (?, 'thing', ?, ?, ?, ?)");
  const addIndex = db.prepare("INSERT INTO indexed VALUES ('thing', 'owner', 'ada', ?, ?)");
  for (const [id, key] of [
    [1, "a"],
    [2, "b"],
  ]) {
    addRow.run(id, key, id, JSON.stringify({ key }), '[["owner","ada"]]');
    addIndex.run(key, id);
  }
  db.exec("UPDATE revision SET last = 2");
  db.close();
}

function withDatabase<R>(path: string, look: (db: Database.Database) => R): R {
  const db = new Database(path);
  try {
    return look(db);
  } finally {
    db.close();
  }
}

const versions = (path: string) => withDatabase(path, (db) => db.prepare("SELECT version FROM versions ORDER BY 1").pluck().all());

describe("opening a file of an older version", () => {
  it("migrates it and keeps its rows", async () => {
    using tree = temporaryTree();
    const path = `${tree.path}/old.db`;
    writeVersion1(path);
    const store = SqliteStore.open(path);
    const where = { index: "owner", value: "ada" };
    expect(await store.count("thing", where)).toBe(2);
    expect(await store.list("thing", { where, limit: 5 })).toEqual([
      { key: "a", rev: 1, value: { key: "a" } },
      { key: "b", rev: 2, value: { key: "b" } },
    ]);
    expect(await store.swap("thing", "a", 1, {}, { owner: "bob" })).toBe(true);
    expect((await store.get("thing", "a"))?.rev).toBe(3);
    expect(await store.count("thing", where)).toBe(1);
    await store.close();
    expect(versions(path)).toEqual(migrations.map((_, index) => index + 1));
  });

  it("removes the instances and servers of earlier builds, with their indexes and counts", async () => {
    using tree = temporaryTree();
    const path = `${tree.path}/old.db`;
    withDatabase(path, (db) => {
      migrate(db, migrations.slice(0, 2));
      db.exec(`INSERT INTO rows VALUES (1, 'instance', 'i', 1, '{"replica":"r-1"}', '[["live","yes"]]'), (2, 'token', 't', 2, '{}', '[]')`);
      db.exec("INSERT INTO indexed VALUES ('instance', 'live', 'yes', 'i', 1)");
    });
    const store = SqliteStore.open(path);
    expect(await store.get("instance", "i")).toBeNull();
    expect(await store.count("instance", { index: "live", value: "yes" })).toBe(0);
    expect(await store.get("token", "t")).not.toBeNull();
    await store.close();
  });

  it("leaves it unchanged if a step fails", () => {
    using tree = temporaryTree();
    const path = `${tree.path}/old.db`;
    writeVersion1(path);
    const steps = [...migrations, { makes: "trouble", sql: "CREATE TABLE extra (a TEXT); DROP TABLE rows; DROP TABLE missing" }];
    withDatabase(path, (db) => expect(() => migrate(db, steps)).toThrow("no such table: missing"));
    expect(versions(path)).toEqual([1]);
    const tables = withDatabase(path, (db) => db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1").pluck().all());
    expect(tables).toEqual(["indexed", "revision", "rows", "versions"]);
  });
});

describe("opening an unsupported file", () => {
  it("refuses one of a newer version, and leaves it unchanged", async () => {
    using tree = temporaryTree();
    const path = `${tree.path}/new.db`;
    await SqliteStore.open(path).close();
    withDatabase(path, (db) => db.exec("INSERT INTO versions VALUES (99, 'wings', 'tomorrow')"));
    expect(() => SqliteStore.open(path)).toThrow(
      expect.objectContaining({
        code: "store.invalid",
        message: `${path} has version 99, but this server supports versions up to ${migrations.length}: it was used by a newer server. Run that server, or give this one another file.`,
      }),
    );
    expect(versions(path).at(-1)).toBe(99);
  });

  it("refuses one of another program", () => {
    using tree = temporaryTree();
    const path = `${tree.path}/music.db`;
    withDatabase(path, (db) => db.exec("CREATE TABLE songs (title TEXT)"));
    expect(() => SqliteStore.open(path)).toThrow(`${path} is a database of another program (it has a table 'songs'): choose another file`);
  });
});
