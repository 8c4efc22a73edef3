import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { describeStore } from "../conformance.ts";
import { RedisStore } from "./store.ts";

async function ask(server: RedisServer, ...command: [string, ...string[]]): Promise<unknown> {
  const client = new Redis(server.url);
  try {
    return await client.call(...command);
  } finally {
    client.disconnect();
  }
}

describeNeeding("redis", "in a cluster of two", () => {
  const nodes: RedisServer[] = [];
  let url = "";
  beforeAll(async () => {
    for (const slots of [
      ["0", "8191"],
      ["8192", "16383"],
    ] as const) {
      const node = await startRedis({ "cluster-enabled": "yes" });
      nodes.push(node);
      await ask(node, "CLUSTER", "ADDSLOTSRANGE", ...slots);
    }
    const [one, two] = nodes as [RedisServer, RedisServer];
    await ask(one, "CLUSTER", "MEET", "127.0.0.1", String(two.port));
    for (const node of nodes) {
      await vi.waitFor(async () => expect(await ask(node, "CLUSTER", "INFO")).toContain("cluster_state:ok"), { timeout: 30_000 });
      await vi.waitFor(async () => expect(await ask(node, "CLUSTER", "INFO")).toContain("cluster_known_nodes:2"), { timeout: 30_000 });
    }
    url = `redis+cluster://127.0.0.1:${one.port},127.0.0.1:${two.port}`;
  });
  afterAll(async () => {
    for (const node of nodes) await node[Symbol.asyncDispose]();
  });

  describeStore("redis cluster", { open: () => RedisStore.open(url) });

  it("spreads kinds over the nodes, each kind on one node", async () => {
    const store = await RedisStore.open(url);
    await Promise.all(Array.from({ length: 20 }, (_, i) => store.insert(`kind-${i}`, "a", i, { owner: "ada" })));
    for (const node of nodes) expect(await ask(node, "DBSIZE")).toBeGreaterThan(0);
    await store.close();
  });

  it("survives the restart of a node", { timeout: 60_000 }, async () => {
    const store = await RedisStore.open(url);
    for (const node of nodes) {
      await node.stop();
      const inserts = Promise.all(Array.from({ length: 20 }, (_, i) => store.insert(`again-${i}`, `${node.port}`, i, {})));
      await node.start();
      expect(new Set(await inserts)).toEqual(new Set(["inserted"]));
    }
    await store.close();
  });

  it("fails its ping while all nodes are down, and recovers when they are back", { timeout: 60_000 }, async () => {
    const store = await RedisStore.open(url);
    for (const node of nodes) await node.stop();
    await expect(store.ping()).rejects.toMatchObject({ code: "store.unavailable", message: expect.stringContaining("cannot be reached") });
    for (const node of nodes) await node.start();
    await vi.waitFor(() => store.ping(), { timeout: 10_000 });
    expect(await store.insert("back", "again", 1, {})).toBe("inserted");
    await store.close();
  });
});

describeNeeding("redis", "watched by a sentinel", () => {
  const servers: RedisServer[] = [];
  afterAll(async () => {
    for (const server of servers.reverse()) await server[Symbol.asyncDispose]();
  });

  it("follows a failover to a replica", { timeout: 60_000 }, async () => {
    const master = await startRedis();
    servers.push(master);
    const replica = await startRedis({ replicaof: `127.0.0.1 ${master.port}` });
    servers.push(replica);
    await vi.waitFor(async () => expect(await ask(replica, "INFO", "replication")).toContain("master_link_status:up"), { timeout: 20_000 });
    const sentinel = await startRedis({
      "sentinel monitor": `main 127.0.0.1 ${master.port} 1`,
      "sentinel down-after-milliseconds": "main 1500",
      "sentinel failover-timeout": "main 5000",
    });
    servers.push(sentinel);
    const knowsReplica = async () => expect(await ask(sentinel, "SENTINEL", "REPLICAS", "main")).toHaveLength(1);
    await vi.waitFor(knowsReplica, { timeout: 20_000 });

    const store = await RedisStore.open(`redis+sentinel://127.0.0.1:${sentinel.port}/main`, { outageMs: 25_000 });
    await store.insert("thing", "a", 1, { owner: "ada" });
    await vi.waitFor(async () => expect(await ask(replica, "DBSIZE")).toBe(await ask(master, "DBSIZE")), { timeout: 20_000 });
    await master.stop("SIGKILL");
    expect(await store.insert("thing", "b", 2, { owner: "ada" })).toBe("inserted");
    expect(await store.count("thing", { index: "owner", value: "ada" })).toBe(2);
    await store.close();
    expect(await ask(replica, "INFO", "replication")).toContain("role:master");
  });

  it("reports that no sentinel responds", async () => {
    await expect(RedisStore.open("redis+sentinel://127.0.0.1:1,127.0.0.1:2/main")).rejects.toMatchObject({
      code: "store.unavailable",
      message: expect.stringContaining("the Redis sentinel at 127.0.0.1:1,127.0.0.1:2 cannot be reached: "),
    });
  });
});
