import { describeNeeding, type RedisServer, startRedis, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { MemoryRows, MemoryStore } from "../stores/memory/store.ts";
import { RedisStore } from "../stores/redis/store.ts";
import { SqliteStore } from "../stores/sqlite/store.ts";
import type { Store } from "../stores/store.ts";
import { ada, openTestHub, root, type TestHubOptions, tim } from "./fixtures/hub.ts";

const rows = new MemoryRows();
describe("servers that share memory", () => claims(async () => new MemoryStore(rows)));

describe("servers that share a file", () => claims(async (home) => SqliteStore.open(`${home}/server.db`)));

describeNeeding("redis", "replicas that share a Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.[Symbol.asyncDispose]());
  claims(() => RedisStore.open(redis.url));
});

function claims(openStore: (home: string) => Promise<Store>) {
  let names = 0;
  async function replicas(count: number, options: TestHubOptions = {}) {
    const tree = temporaryTree();
    onTestFinished(() => tree[Symbol.dispose]());
    names += 1;
    const hubs = [];
    for (let at = 0; at < count; at += 1)
      hubs.push(openTestHub("memory", { ...options, home: tree.path, store: await openStore(tree.path) }));
    return { hubs, name: `shared-${names}` };
  }

  it("publish one version exactly once, through any server", async () => {
    const { hubs, name } = await replicas(3);
    const settled = await Promise.allSettled(
      Array.from({ length: 12 }, (_, at) => hubs[at % 3]?.push(ada, name, "1.0.0", {}, `run(${at})`)),
    );
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const one of settled) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "environment.exists" });
    const seen = await Promise.all(hubs.map(({ hub }) => hub.get(name, "1.0.0", ada)));
    expect(new Set(seen.map(({ contentDigest }) => contentDigest)).size).toBe(1);
    for (const { hub } of hubs) expect(await hub.bundleFolder(seen[0]?.bundleDigest as string)).toContain(hubs[0]?.home);
  });

  it("see changes of another server at once", async () => {
    const { hubs, name } = await replicas(2);
    const [one, two] = hubs.map(({ hub }) => hub);
    await hubs[0]?.push(ada, name, "1.0.0", { visibility: "public", tags: [name] });
    expect(await two?.resolve(name, tim)).toMatchObject({ version: "1.0.0", status: "Verified" });
    await two?.release(name, "1.0.0", ada);
    expect(await one?.status(name, "1.0.0", tim)).toBe("Released");
    await one?.setVisibility(name, "1.0.0", { visibility: "private" }, ada);
    await expect(two?.get(name, "1.0.0", tim)).rejects.toMatchObject({ code: "environment.not_found" });
    expect((await two?.list({ tag: name }, root))?.total).toBe(1);
    await two?.remove(name, null, root);
    await expect(one?.resolve(name, ada)).rejects.toMatchObject({ code: "environment.not_found" });
  });

  it("accept a one-time link once", async () => {
    const { hubs, name } = await replicas(2);
    const [one, two] = hubs.map(({ hub }) => hub.transfers);
    await hubs[0]?.push(ada, name, "1.0.0");
    const { ticket } = (await one?.sign(name, "1.0.0", "download", ada)) ?? { ticket: "" };
    const settled = await Promise.allSettled([one?.send(ticket), two?.send(ticket), one?.send(ticket), two?.send(ticket)]);
    const sent = settled.flatMap((done) => (done.status === "fulfilled" && done.value !== undefined ? done.value : []));
    for (const { stream } of sent) stream.destroy();
    expect(sent).toHaveLength(1);
  });

  it("clean up the same disk without losing published content", async () => {
    const { hubs, name } = await replicas(2);
    await hubs[0]?.push(ada, name, "1.0.0");
    await hubs[1]?.push(ada, name, "2.0.0");
    await hubs[0]?.hub.remove(name, "1.0.0", ada);
    for (const opened of hubs) opened.later(2 * 3_600_000);
    await Promise.all(hubs.map(({ hub }) => hub.collect()));
    const kept = await hubs[1]?.hub.get(name, "2.0.0", ada);
    expect(await hubs[0]?.hub.bundleFolder(kept?.bundleDigest as string)).toBeTruthy();
  });
}
