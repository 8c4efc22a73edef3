import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, statSync, writeFileSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { temporaryTree } from "@aenv/testing";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { describeStore } from "../conformance.ts";
import { prepare } from "./statements.ts";
import { SqliteStore } from "./store.ts";

const tree = temporaryTree();
afterAll(() => tree[Symbol.dispose]());

describeStore("sqlite", { open: async () => SqliteStore.open(`${tree.path}/server.db`) });

describe("the sqlite store", () => {
  it("creates missing folders and a file that only its owner can read", async () => {
    const path = `${tree.path}/home/data/server.db`;
    await using opened = disposable(SqliteStore.open(path));
    await opened.store.insert("token", "a", 1, {});
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("uses an index for every statement, and never sorts", async () => {
    const path = `${tree.path}/plans.db`;
    await SqliteStore.open(path).close();
    const db = new Database(path);
    for (const { source } of Object.values(prepare(db))) {
      const plan = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${source}`).all(...source.replace(/[^?]/g, ""));
      // The one table without an index has one row.
      const slow = plan.filter(({ detail }) => /SCAN|B-TREE/.test(detail) && detail !== "SCAN revision");
      expect({ source, slow }).toEqual({ source, slow: [] });
    }
    db.close();
  });

  it("can be created by several processes at the same time", { timeout: 60_000 }, async () => {
    const path = `${tree.path}/rush/server.db`;
    const opener = fileURLToPath(new URL("fixtures/opener.ts", import.meta.url));
    const children = Array.from({ length: 4 }, () => spawn(process.execPath, [opener, path], { stdio: ["ignore", "ignore", "inherit"] }));
    const exits = await Promise.all(children.map((child) => once(child, "exit")));
    expect(exits).toEqual(children.map(() => [0, null]));
    await using opened = disposable(SqliteStore.open(path));
    expect(await opened.store.count("thing", { index: "by", value: "opener" })).toBe(40);
  });

  it("reports that another process locks the file, and continues after the unlock", async () => {
    const path = `${tree.path}/busy.db`;
    await using opened = disposable(SqliteStore.open(path, { busyTimeoutMs: 20 }));
    const holder = new Database(path);
    holder.exec("BEGIN IMMEDIATE");
    await expect(opened.store.insert("thing", "a", 1, {})).rejects.toMatchObject({
      code: "store.unavailable",
      retryable: true,
      message: `${path} is locked by another process: stop that process, or try again`,
    });
    expect(await opened.store.get("thing", "a")).toBeNull();
    holder.close();
    expect(await opened.store.insert("thing", "a", 1, {})).toBe("inserted");
  });
});

describe("opening an unusable sqlite store", () => {
  it("reports that a file is not a database, and the next step", () => {
    const path = `${tree.path}/letter.db`;
    writeFileSync(path, "Dear database,\n".repeat(100));
    expect(() => SqliteStore.open(path)).toThrow(
      expect.objectContaining({
        code: "store.damaged",
        retryable: false,
        message: expect.stringMatching(/letter\.db is damaged or not a SQLite database: .*restore a backup, or recover what can be read/),
      }),
    );
  });

  it.each(["the first page", "any page", "the end"])("reports a file that is damaged at %s", async (place) => {
    const path = `${tree.path}/damaged-${place.replaceAll(" ", "-")}.db`;
    const store = SqliteStore.open(path);
    for (let i = 0; i < 200; i++) await store.insert("thing", `row-${i}`, "x".repeat(2000), { owner: "ada" });
    await store.close();
    const { size } = statSync(path);
    const file = openSync(path, "r+");
    const garbage = Buffer.alloc(4096 * 8, 0xa5);
    writeSync(
      file,
      garbage,
      0,
      garbage.length,
      place === "the first page" ? 100 : place === "any page" ? 4096 * 20 : size - garbage.length,
    );
    closeSync(file);
    expect(() => SqliteStore.open(path)).toThrow(
      expect.objectContaining({ code: "store.damaged", message: expect.stringContaining("Stop all servers that use it") }),
    );
  });

  it("reports a path that it cannot write to", () => {
    writeFileSync(`${tree.path}/file`, "");
    for (const path of [`${tree.path}/file/server.db`, tree.path]) {
      expect(() => SqliteStore.open(path)).toThrow(
        expect.objectContaining({ code: "store.unavailable", message: expect.stringContaining(`cannot open ${path} for writing`) }),
      );
    }
  });
});

function disposable(store: SqliteStore) {
  return { store, [Symbol.asyncDispose]: () => store.close() };
}
