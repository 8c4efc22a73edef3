import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding, Random, type RedisServer, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { check } from "./crash/check.ts";
import { Load } from "./crash/load.ts";
import { killSandboxOf, lookAt } from "./crash/sandboxes.ts";
import { type ServerProcess, type Starting, startServerProcess } from "./crash/server-process.ts";
import { World } from "./crash/world.ts";
import { projects, publish } from "./platform.ts";
import { removeHome } from "./processes.ts";

/** `AENV_PEER_ROUNDS=100` for a long run. */
const ROUNDS = Number(process.env.AENV_PEER_ROUNDS ?? 6);

describeNeeding("redis", "two servers on one Redis", () => {
  vi.setConfig({ testTimeout: 60_000 });
  // The tests use the same servers in order, so after a failure the later ones would fail too.
  let hasFailed = false;
  beforeEach(({ skip, onTestFailed }) => {
    skip(hasFailed, "an earlier test has failed");
    onTestFailed(() => {
      hasFailed = true;
    });
  });
  let home: string;
  const world = new World();
  let redis: RedisServer;
  const started: Starting[] = [];
  let servers: ServerProcess[] = [];
  let refs: readonly [string, string];

  const start = () => {
    const flags = { store: redis.url, poolMin: 0, poolMax: 1, round: "200ms", startTimeout: "10s", maxHosts: 2 };
    const starting = startServerProcess(home, { flags });
    started.push(starting);
    return starting.ready;
  };
  const load = (seed: number, operations: number, last: () => Promise<void>) =>
    new Load(servers, world, new Random(seed), refs).run(operations, last);

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "aenv-replicas-"));
    redis = await startRedis({ appendonly: "yes", appendfsync: "always" });
    servers = await Promise.all([start(), start()]);
    const [first] = servers as [ServerProcess, ServerProcess];
    refs = [await publish(first, projects.probe), await publish(first, projects.probe, { isolation: "shared" })];
  });

  afterAll(async () => {
    await Promise.allSettled(started.map((server) => server.kill()));
    await removeHome(home);
    await redis?.[Symbol.asyncDispose]();
  });

  it("serve the same instances", async () => {
    await load(1, 80, async () => {});
    await check(servers, world, home);
  });

  it("end an instance within a second of its time, whichever of them has set it last", async () => {
    const [first, second] = servers as [ServerProcess, ServerProcess];
    const create = async (ttl: string) => (await first.create(refs[1], { ttl })).id;
    const renew = async (id: string, ttl: string) => void (await second.demand("POST", `/env-instance/${id}/renew`, { ttl }));
    const ids = [await create("3s"), await create("1h"), await create("2s")];
    await renew(ids[1] as string, "2s");
    await renew(ids[2] as string, "5s");
    for (const id of ids) {
      const over = await vi.waitFor(
        async () => {
          const record = (await second.demand("GET", `/env-instance/${id}`)) as Record<"status" | "updated_at" | "expires_at", string>;
          expect(record.status).toBe("Terminated");
          return record;
        },
        { timeout: 20_000, interval: 100 },
      );
      const lateMs = Date.parse(over.updated_at) - Date.parse(over.expires_at);
      expect(lateMs).toBeGreaterThanOrEqual(0);
      expect(lateMs).toBeLessThan(1_000);
    }
  });

  /** A server is killed under load, the other takes over, and a third joins. */
  async function live(round: number): Promise<void> {
    const [victim, other] = (round % 2 === 0 ? servers : [...servers].reverse()) as [ServerProcess, ServerProcess];
    await load(round, 40, () => victim.kill());
    servers = [other];
    await check(servers, world, home);
    servers = [other, await start()];
    await load(round, 20, async () => {});
    await check(servers, world, home);
  }

  it(
    `lose, double and leak nothing when one is killed under load, ${ROUNDS} times, and one that comes joins`,
    async () => {
      for (let round = 1; round <= ROUNDS; round++) {
        await live(round).catch((cause: unknown) => {
          const logs = servers.map((server) => server.log()).join("\n");
          throw new Error(`round ${round}: ${(cause as Error).message}\n${logs}`, { cause });
        });
      }
    },
    ROUNDS * 60_000,
  );

  it("hand over their instances when one is stopped", async () => {
    const [victim, other] = servers as [ServerProcess, ServerProcess];
    await load(10, 40, async () => {});
    const before = world.usable.map(({ id }) => id);
    await victim.stop();
    servers = [other];
    await check(servers, world, home);
    expect(world.usable.map(({ id }) => id)).toEqual(expect.arrayContaining(before));
    servers = [other, await start()];
  });

  it("recover by themselves after an outage of Redis under load, with all acknowledged changes", async () => {
    await load(20, 40, async () => {
      await redis.stop("SIGKILL");
      await redis.start();
    });
    await check(servers, world, home);
    await load(21, 30, async () => {});
    await check(servers, world, home);
  });

  it("store what happened during a long outage of Redis", async () => {
    const [first, second] = servers as [ServerProcess, ServerProcess];
    const { id } = await first.create(refs[0]);
    await redis.stop("SIGKILL");
    await killSandboxOf(home, id);
    expect(await second.ask("GET", `/env-instance/${id}`)).toMatchObject({
      status: 503,
      error: { code: "store.unavailable", retryable: true },
    });
    await redis.start();
    await vi.waitFor(
      async () => {
        const record = await second.demand("GET", `/env-instance/${id}`);
        expect(record).toMatchObject({ status: "Failed", reason: expect.stringContaining("killed by SIGKILL") });
      },
      { timeout: 20_000 },
    );
    await check(servers, world, home);
  });

  it("leave nothing when both are stopped at once", async () => {
    await Promise.all(servers.map((server) => server.stop()));
    servers = [];
    expect(await lookAt(home)).toEqual({ sandboxes: [], unfinished: [], processes: [], slots: new Map() });
  });
});
