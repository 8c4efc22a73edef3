import { inspect } from "node:util";
import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeStore } from "../conformance.ts";
import { Keys } from "./keys.ts";
import { RedisStore } from "./store.ts";

describeNeeding("redis", "with a real Redis", () => {
  let redis: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    admin = new Redis(redis.url);
  });
  afterAll(async () => {
    admin?.disconnect();
    await redis?.[Symbol.asyncDispose]();
  });

  describeStore("redis", { open: () => RedisStore.open(redis.url) });

  it("keeps only the revision and expiring receipts of removed rows", async () => {
    const store = await RedisStore.open(`${redis.url}/1`);
    await store.insert("thing", "a", 1, { owner: "ada" });
    await store.swap("thing", "a", (await store.get("thing", "a"))?.rev ?? 0, 2, { owner: "bob" });
    await store.remove("thing", "a");
    await admin.select(1);
    const names = await admin.keys("*");
    for (const name of names) {
      if (name.includes(":done:")) expect(await admin.pttl(name)).toBeGreaterThan(0);
      else expect(name).toBe("{aenv:thing}:rev");
    }
    expect(names).toHaveLength(4);
    await store.close();
  });

  it("separates the rows of two prefixes", async () => {
    const one = await RedisStore.open(`${redis.url}?prefix=one`);
    const two = await RedisStore.open(`${redis.url}?prefix=two`);
    await one.insert("thing", "a", 1, {});
    expect(await two.get("thing", "a")).toBeNull();
    expect(await two.list("thing", { limit: 5 })).toEqual([]);
    await Promise.all([one.close(), two.close()]);
  });

  it("refuses the keys of an earlier build with a clear error", async () => {
    const earlier = await RedisStore.open(`${redis.url}?prefix=older`);
    await earlier.insert("replica", "r-1", {}, {});
    await earlier.close();
    await expect(RedisStore.open(`${redis.url}?prefix=older`)).rejects.toMatchObject({
      code: "store.invalid",
      message:
        "the Redis keys with the prefix 'older' were written by an earlier build of this server. Delete them, or choose another prefix",
    });
  });

  it("sends its scripts again if Redis has lost them", async () => {
    const store = await RedisStore.open(redis.url);
    await store.insert("forgotten", "a", 1, {});
    await admin.script("FLUSH");
    const results = await Promise.all(["b", "c", "d"].map((key) => store.insert("forgotten", key, 1, {})));
    expect(results).toEqual(["inserted", "inserted", "inserted"]);
    await admin.script("FLUSH");
    expect(await store.list("forgotten", { limit: 9 })).toHaveLength(4);
    await store.close();
  });

  it("assigns growing revisions even if Redis lost the last one", async () => {
    const store = await RedisStore.open(redis.url);
    await store.insert("amnesia", "a", 1, {});
    const rev = (await store.get("amnesia", "a"))?.rev ?? 0;
    await admin.flushall();
    await store.insert("amnesia", "a", 2, {});
    expect(await store.swap("amnesia", "a", rev, 3, {})).toBe(false);
    await store.close();
  });

  it("refuses a Redis that evicts keys", async () => {
    await admin.config("SET", "maxmemory-policy", "allkeys-lru");
    await expect(RedisStore.open(redis.url)).rejects.toMatchObject({
      code: "store.invalid",
      message: `Redis at 127.0.0.1:${redis.port} evicts keys when it is full (maxmemory-policy allkeys-lru): set maxmemory-policy to noeviction, or use another Redis`,
    });
    await admin.config("SET", "maxmemory-policy", "noeviction");
  });

  it("passes on the reason for a refused change", async () => {
    const store = await RedisStore.open(redis.url);
    await admin.config("SET", "maxmemory", "1");
    await expect(store.insert("thing", "a", 1, {})).rejects.toMatchObject({
      code: "store.unavailable",
      message: expect.stringMatching(/^Redis at 127\.0\.0\.1:\d+ refused a command: OOM command not allowed/),
    });
    await admin.config("SET", "maxmemory", "0");
    await store.close();
  });
});

describeNeeding("redis", "with a Redis that wants a password", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ requirepass: "open:sesame", user: "ada on >l@velace ~* &* +@all" });
  });
  afterAll(() => redis?.[Symbol.asyncDispose]());

  const urlWith = (login: string) => redis.url.replace("//", `//${login}@`);

  it.each([":open%3Asesame", "ada:l%40velace"])("connects with the login '%s'", async (login) => {
    const store = await RedisStore.open(urlWith(login));
    expect(await store.insert("thing", login, 1, {})).toBe("inserted");
    await store.close();
  });

  it.each([":wrong-secret", "ada:wrong-secret", "wrong-secret:wrong-secret"])(
    "says that '%s' is wrong and keeps it to itself",
    async (login) => {
      const error: unknown = await RedisStore.open(urlWith(login)).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "store.unavailable", message: expect.stringContaining("WRONGPASS") });
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain("wrong-secret");
    },
  );

  it("reports a missing password", async () => {
    await expect(RedisStore.open(redis.url)).rejects.toThrow("NOAUTH");
  });
});

describe("Keys", () => {
  it("refuses a prefix that would spread a kind over cluster nodes", () => {
    expect(() => new Keys("a}b")).toThrow("the Redis prefix 'a}b' contains a brace: choose one without");
  });
});
