import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Collection } from "../collection.ts";
import { openWire, type Wire } from "./fixtures/wire.ts";
import { RedisStore } from "./store.ts";

describeNeeding("redis", "when Redis or the way to it fails", () => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  let redis: RedisServer;
  beforeEach(async () => {
    redis = await startRedis({ appendonly: "yes", appendfsync: "always" });
    closers.push(() => redis[Symbol.asyncDispose]());
  });

  async function openStore(url = redis.url, outageMs?: number): Promise<RedisStore> {
    const store = await RedisStore.open(url, outageMs === undefined ? {} : { outageMs });
    closers.push(() => store.close());
    return store;
  }

  /** A store whose replies can be dropped. Each script was used before, so that a dropped reply is not just NOSCRIPT. */
  async function openBrittle(outageMs?: number): Promise<{ store: RedisStore; wire: Wire }> {
    const wire = await openWire(redis.port);
    closers.push(() => wire[Symbol.asyncDispose]());
    const store = await openStore(wire.url, outageMs);
    await store.insert("warm", "up", 1, {});
    await store.swap("warm", "up", (await store.get("warm", "up"))?.rev ?? 0, 2, {});
    await store.remove("warm", "up");
    return { store, wire };
  }

  it.each(["SIGTERM", "SIGKILL"] as const)(
    "loses and doubles nothing while Redis is restarted by %s",
    { timeout: 60_000 },
    async (signal) => {
      const stores = [await openStore(), await openStore()] as const;
      const counters = stores.map((store) => new Collection<{ n: number }>(store, "counter", () => ({})));
      await counters[0]?.insert("c", { n: 0 });
      let isDone = false;
      const inserted: string[] = [];
      let increments = 0;
      const insertAll = async (store: RedisStore, name: string) => {
        for (let i = 0; !isDone; i++) {
          const key = `${name}-${i}`;
          expect(await store.insert("thing", key, { i }, { writer: name })).toBe("inserted");
          inserted.push(key);
        }
      };
      const increment = async (counter: Collection<{ n: number }> | undefined) => {
        while (!isDone) {
          await counter?.update("c", ({ n }) => ({ n: n + 1 }));
          increments += 1;
        }
      };
      const work = [insertAll(stores[0], "one"), insertAll(stores[1], "two"), ...counters.map(increment), ...counters.map(increment)];
      for (let round = 0; round < 3; round++) {
        const before = increments;
        await vi.waitFor(() => expect(increments).toBeGreaterThan(before + 20), { timeout: 10_000 });
        await redis.stop(signal);
        await redis.start();
      }
      isDone = true;
      await Promise.all(work);
      await redis.stop("SIGKILL");
      await redis.start();

      const fresh = await openStore();
      expect((await fresh.get("counter", "c"))?.value).toEqual({ n: increments });
      const things = await fresh.list("thing", { limit: 1e6 });
      expect(things.map(({ key }) => key)).toEqual(inserted.sort());
      const ones = inserted.filter((key) => key.startsWith("one-")).length;
      expect(await fresh.count("thing", { index: "writer", value: "one" })).toBe(ones);
    },
  );

  it("fails its ping while Redis is down, fails calls after the timeout and then at once, and recovers by itself", async () => {
    const store = await openStore(redis.url, 1_000);
    await store.insert("thing", "a", 1, {});
    await redis.stop();
    const gone = {
      code: "store.unavailable",
      retryable: true,
      message: expect.stringContaining(`Redis at 127.0.0.1:${redis.port} cannot be reached: `),
    };
    await vi.waitFor(() => expect(store.ping()).rejects.toMatchObject(gone));
    await expect(store.get("thing", "a")).rejects.toMatchObject(gone);
    await expect(store.insert("thing", "b", 1, {})).rejects.toMatchObject({ ...gone, details: { mayHaveChanged: false } });
    const startedAt = performance.now();
    await expect(store.get("thing", "a")).rejects.toMatchObject({ message: expect.stringContaining("ECONNREFUSED") });
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    await redis.start();
    await vi.waitFor(() => store.ping(), { timeout: 5_000 });
    expect((await store.get("thing", "a"))?.value).toBe(1);
    expect(await store.insert("thing", "b", 1, {})).toBe("inserted");
  });

  it("notices a Redis that hangs, and finishes pending calls when it responds again", async () => {
    const store = await openStore();
    redis.signal("SIGSTOP");
    const insert = store.insert("thing", "a", 1, {});
    await expect(store.ping()).rejects.toThrow("no answer within 2 s");
    redis.signal("SIGCONT");
    expect(await insert).toBe("inserted");
    await store.ping();
  });

  it("closes while Redis is down, and rejects pending calls", async () => {
    const store = await openStore();
    await redis.stop("SIGKILL");
    const waiting = store.get("thing", "a");
    await store.close();
    await expect(waiting).rejects.toMatchObject({ code: "store.unavailable", message: expect.stringContaining("is closed") });
  });

  it("recognizes its insert after a lost reply, even if the row was removed", async () => {
    const { store, wire } = await openBrittle();
    const other = await openStore();
    const lost = wire.loseNextAnswer(async () => {
      expect(await other.remove("thing", "a")).toBe(true);
    });
    expect(await store.insert("thing", "a", 1, { owner: "ada" })).toBe("inserted");
    await lost;
    expect(await store.get("thing", "a")).toBeNull();
    expect(await store.count("thing", { index: "owner", value: "ada" })).toBe(0);
  });

  it("recognizes its swap after a lost reply, even if others have swapped since", async () => {
    const { store, wire } = await openBrittle();
    const other = new Collection<number>(await openStore(), "thing", () => ({}));
    const counter = new Collection<number>(store, "thing", () => ({}));
    await counter.insert("n", 0);
    const row = await counter.find("n");
    const lost = wire.loseNextAnswer(async () => {
      for (let i = 0; i < 3; i++) await other.update("n", (n) => n + 1);
    });
    expect(row !== null && (await counter.swap(row, 10))).toBe(true);
    await lost;
    expect((await counter.find("n"))?.value).toBe(13);
  });

  it("recognizes its removal after a lost reply, and keeps a row inserted since", async () => {
    const { store, wire } = await openBrittle();
    const other = await openStore();
    await store.insert("thing", "a", "old", {});
    const lost = wire.loseNextAnswer(async () => {
      await other.insert("thing", "a", "new", {});
    });
    expect(await store.remove("thing", "a")).toBe(true);
    await lost;
    expect((await store.get("thing", "a"))?.value).toBe("new");
  });

  it("reports that a change may have been made if no reply arrived", async () => {
    const { store, wire } = await openBrittle(200);
    const lost = wire.loseNextAnswer(async () => {
      await wire[Symbol.asyncDispose]();
    });
    await expect(store.insert("thing", "a", 1, {})).rejects.toMatchObject({
      code: "store.unavailable",
      message: expect.stringContaining("the change may have been made"),
      details: { mayHaveChanged: true },
    });
    await lost;
    expect((await (await openStore()).get("thing", "a"))?.value).toBe(1);
  });
});
