import { existsSync } from "node:fs";
import { describeNeeding, startRedis, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { openStore } from "./open.ts";

describe("openStore", () => {
  it("opens a store in memory", async () => {
    for (const url of ["memory:", "memory://"]) expect((await openStore(url)).name).toBe("memory");
  });

  it.each(["sqlite:", "sqlite://", ""])("opens a file as '%s' and its path", async (scheme) => {
    using tree = temporaryTree();
    const path = `${tree.path}/a folder/server.db`;
    const store = await openStore(scheme + path);
    expect(store.name).toBe("sqlite");
    await store.insert("thing", "a", 1, {});
    await store.close();
    expect(existsSync(path)).toBe(true);
  });

  it.each([
    ["", "it is empty"],
    ["redis", "'redis' is neither a kind of store nor a file"],
    ["postgres://ada:secret@host/db", "'postgres:' is not a kind of store"],
    ["memory:x", "'memory:' takes nothing after the colon"],
    ["sqlite:", "it names no file"],
    ["sqlite:/a/folder/", "it names no file"],
    ["sqlite://host/server.db", "a SQLite file cannot be on another host"],
    ["sqlite:~/server.db", "'~' is not expanded: write the absolute path"],
    ["~/server.db", "'~' is not expanded: write the absolute path"],
    ["sqlite::memory:", "for a store in memory write memory:"],
  ])("refuses '%s' and says what it takes", async (url, why) => {
    await expect(openStore(url)).rejects.toMatchObject({
      code: "store.invalid",
      message: `the store's address cannot be used: ${why}. Write memory:, sqlite:/path/server.db, redis://host:6379, rediss://host, redis+sentinel://host,host/group or redis+cluster://host,host`,
    });
    expect(existsSync("~")).toBe(false);
  });

  it("reports that nothing listens at the address", async () => {
    await expect(openStore("redis://ada:secret@127.0.0.1:1")).rejects.toMatchObject({
      code: "store.unavailable",
      message:
        "Redis at 127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1. Check that it runs and is reachable from this machine",
    });
  });
});

describeNeeding("redis", "openStore with a real Redis", () => {
  it("opens it", async () => {
    await using redis = await startRedis();
    const store = await openStore(redis.url);
    expect(store.name).toBe("redis");
    await store.ping();
    await store.close();
  });
});
