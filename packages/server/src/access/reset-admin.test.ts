import { existsSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, startRedis, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { openStore } from "../stores/open.ts";
import { resetAdmin } from "./reset-admin.ts";
import { Tokens, tokenRows } from "./tokens.ts";

const now = () => new Date();

async function check(url: string): Promise<void> {
  // The server keeps the store open.
  const store = await openStore(url);
  try {
    const tokens = new Tokens(tokenRows(store), now);
    const lost = await tokens.create({ owner: "root", roles: ["admin", "publisher"] });
    const trainer = await tokens.create({ owner: "ada", roles: ["trainer"] });
    const second = await resetAdmin({ store: url });
    expect(second.revoked).toEqual([]);
    expect(await tokens.verify(second.token)).toMatchObject({ owner: "admin", tokenId: second.id });
    const third = await resetAdmin({ store: url }, { owner: "root", revokesOthers: true });
    expect([...third.revoked].sort()).toEqual([lost.row.id, second.id].sort());
    const later = new Tokens(tokenRows(store), now);
    const found = await Promise.all([lost, second, third, trainer].map(({ token }) => later.verify(token)));
    expect(found.map((caller) => caller?.owner ?? null)).toEqual([null, null, "root", "ada"]);
  } finally {
    await store.close();
  }
}

describe("resetAdmin", () => {
  it("creates a token while a server on SQLite runs, and revokes the others if requested", async () => {
    using tree = temporaryTree();
    await check(`sqlite:${join(tree.path, "server.db")}`);
  });

  it("does not create a missing store", async () => {
    using tree = temporaryTree();
    const file = join(tree.path, "server.db");
    for (const store of [`sqlite:${file}`, file]) await expect(resetAdmin({ store })).rejects.toThrow(/does not exist; pass the server/);
    expect(existsSync(file)).toBe(false);
    await expect(resetAdmin({ store: "memory:" })).rejects.toThrow(/restart the server/);
  });
});

describeNeeding("redis", "resetAdmin on Redis", () => {
  it("works with Redis too", async () => {
    await using redis = await startRedis();
    await check(redis.url);
  });
});
