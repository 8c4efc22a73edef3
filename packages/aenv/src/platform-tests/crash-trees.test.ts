import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describeNeeding, Random, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { check } from "./crash/check.ts";
import { Load } from "./crash/load.ts";
import { killRecovering, playSeeds, seedsOr } from "./crash/runs.ts";
import { lookAt } from "./crash/sandboxes.ts";
import { type ServerProcess, startServerProcess } from "./crash/server-process.ts";
import { World } from "./crash/world.ts";
import { projects, publish } from "./platform.ts";
import { removeHome } from "./processes.ts";

const SEEDS = seedsOr(5);
const FLAGS = { poolMin: 0, poolMax: 1, round: "200ms", startTimeout: "20s", maxHosts: 2 };

describe("a server with trees of three levels that is killed at any moment", () => {
  const home = mkdtempSync(join(tmpdir(), "aenv-crash-trees-"));
  const world = new World();
  let server: ServerProcess;
  let refs: readonly [string, string];

  beforeAll(async () => {
    server = await startServerProcess(home, { flags: FLAGS }).ready;
    const leaf = await publish(server, projects.probe, { isolation: "shared" });
    const below = (uses: object[]) => ({ deployConfig: { uses } });
    const mid = await publish(server, projects.nest, { isolation: "shared", ...below([{ name: "leaf", env: leaf }]) });
    const top = await publish(server, projects.nest, {
      isolation: "instance",
      ...below([
        { name: "mid", env: mid },
        { name: "side", env: leaf },
      ]),
    });
    refs = [top, mid];
  });

  afterAll(async () => {
    await server?.kill();
    await removeHome(home);
  });

  async function live(seed: number): Promise<void> {
    const random = new Random(seed);
    if (!random.isOneIn(3)) await server.dieAfter(1 + random.below(2_000));
    await new Load([server], world, random, refs).run(5 + random.below(60), async () => {
      await pause(random.next() * 20);
      await server.kill();
      world.counts.kills++;
    });
    await killRecovering(home, FLAGS, world, random);
    server = await startServerProcess(home, { flags: FLAGS }).ready;
    await check([server], world, home);
  }

  it(
    `leaves no orphan, no doubled child and nothing in the quota over ${SEEDS} runs`,
    () => playSeeds(SEEDS, world, live),
    60_000 + SEEDS * 30_000,
  );

  it("leaves nothing when it is stopped", async () => {
    await server.stop();
    expect(await lookAt(home)).toEqual({ sandboxes: [], unfinished: [], processes: [], slots: new Map() });
  });
});

describeNeeding("redis", "trees on two servers on one Redis", () => {
  it("are called and forked through either server, and go on when the one that made them is killed", { timeout: 300_000 }, async () => {
    const home = mkdtempSync(join(tmpdir(), "aenv-tree-peers-"));
    await using redis = await startRedis();
    const flags = { ...FLAGS, store: redis.url, startTimeout: "2m" };
    const servers = await Promise.all([startServerProcess(home, { flags }).ready, startServerProcess(home, { flags }).ready]);
    const [first, second] = servers as [ServerProcess, ServerProcess];
    try {
      const leaf = await publish(first, projects.probe, { isolation: "shared" });
      const deployConfig = { uses: [{ name: "leaf", env: leaf }] };
      const tree = await publish(first, projects.nest, { isolation: "shared", deployConfig });
      const { id } = await first.create(tree, { wait: "25s" });
      const running = (server: ServerProcess, one: string) =>
        expect
          .poll(async () => ((await server.demand("GET", `/env-instance/${one}?wait=5s`)) as { status: string }).status, {
            timeout: 60_000,
          })
          .toBe("Running");
      await running(second, id);
      const count = async (server: ServerProcess, one: string) => (await callTool(urlOf(server, one), "count")).text;
      expect(await count(second, id)).toBe("1");
      const [fork] = (await second.demand("POST", `/env-instance/${id}/fork`, { count: 1 })) as { id: string }[];
      expect(await count(first, fork?.id ?? "")).toBe("2");
      await first.kill();
      for (const [one, at] of [
        [id, 1],
        [fork?.id ?? "", 2],
      ] as const)
        await expect.poll(() => callFunction(second, one, "count"), { timeout: 60_000 }).toBe(at);
      for (const one of [id, fork?.id]) await second.demand("DELETE", `/env-instance/${one}`);
      const { items } = (await second.demand("GET", "/env-instance/list?tree=true")) as { items: { status: string }[] };
      expect(items.filter(({ status }) => status === "Running")).toEqual([]);
      await second.stop();
      expect((await lookAt(home)).processes).toEqual([]);
    } finally {
      for (const server of servers) await server.kill();
      await removeHome(home);
    }
  });
});
