import { PlatformError } from "@aenv/contract";
import { defineEnvironment } from "@aenv/kit";
import { MemoryEngine, type MemoryProgram, type Sandbox } from "@aenv/sandbox";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { kitRunner } from "../instances/fixtures/runner.ts";
import { SandboxClients } from "../sandboxes/client.ts";
import { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { Pool, type PoolOptions, type VersionStatus } from "./pool.ts";
import { Scheduler } from "./scheduler.ts";
import type { BundleRequest, WarmEnvironment } from "./start-request.ts";

const { signal } = new AbortController();

function openPool(options: Partial<PoolOptions> = {}, wrap: (program: MemoryProgram) => MemoryProgram = (program) => program) {
  const tree = temporaryTree();
  const engine = new MemoryEngine({ start: wrap(kitRunner(defineEnvironment({ tools: [] }), tree.path)) });
  const clients = new SandboxClients();
  const clock = { now: 0 };
  const status = new Map<string, VersionStatus>();
  const failures: [string | null, string][] = [];
  const pool = new Pool({
    engine,
    space: new SnapshotSpace(),
    clients,
    runner: ["runner"],
    variables: {},
    serverId: "r-1",
    min: 0,
    limits: { each: 4, perOwner: 100, total: 100 },
    scheduler: new Scheduler({ "process starts": { atOnce: 2, aheadAtOnce: 1 } }),
    refillAfterMs: 0,
    startTimeoutMs: 5_000,
    resources: { memoryMb: 64 },
    versionStatus: async (name) => status.get(name) ?? "newest",
    onFillFailure: (environment, error) => void failures.push([environment, (error as Error).message]),
    now: () => clock.now,
    ...options,
  });
  onTestFinished(async () => {
    await pool.close();
    await clients.close();
    await engine.close();
    tree[Symbol.dispose]();
  });
  const ids = async () => (await engine.list()).map(({ id }) => id);
  return { pool, engine, clock, ids, status, failures };
}

function spec(name: string): BundleRequest {
  return { owner: "ada", folder: `/bundles/${name}`, digest: `sha256:${name}`, variables: {}, environment: null };
}

/** A claim for an environment with prepared processes. */
function prepared(name: string, more: Partial<WarmEnvironment> = {}): BundleRequest {
  return { ...spec(name), environment: { name, version: "1.0.0", owner: "ada", warm: 0, warmStart: false, ...more } };
}

const readyIn = (pool: Pool) => [...pool.sizes().values()].reduce((sum, { ready }) => sum + ready, 0);

const settled = (pool: Pool, set: string, ready: number) =>
  vi.waitFor(() => expect(pool.sizes().get(set)).toEqual({ ready, target: ready }));

describe("a pool", () => {
  it("does not give a blank process to an environment with limits of its own", async () => {
    const { pool, engine, ids } = openPool({
      min: 1,
      limits: { each: 1, perOwner: 1, total: 1 },
      resources: { memoryMb: 64, cpus: 2 },
    });
    await pool.warmUp();
    const [blank] = await ids();
    const create = vi.spyOn(engine, "create");
    const sandbox = await pool.claim({ ...spec("a"), resources: { cpus: 1 } }, signal);
    expect(sandbox.id).not.toBe(blank);
    expect(create.mock.calls[0]?.[0]).toMatchObject({ resources: { memoryMb: 64, cpus: 1 } });
  });

  it("keeps the set number of blank processes ready, and replaces claimed ones", async () => {
    const { pool, ids } = openPool({ min: 2, limits: { each: 2, perOwner: 2, total: 2 } });
    await pool.warmUp();
    const waiting = await ids();
    expect(waiting).toHaveLength(2);
    const sandbox = await pool.claim(spec("shop"), signal);
    expect(waiting).toContain(sandbox.id);
    await settled(pool, "blank", 2);
    expect(await ids()).toHaveLength(3);
  });

  it("replaces a claimed process only after a delay", async () => {
    const { pool, ids } = openPool({ min: 1, limits: { each: 1, perOwner: 1, total: 1 }, refillAfterMs: 60_000 });
    await pool.warmUp();
    const waiting = await ids();
    const sandbox = await pool.claim(spec("shop"), signal);
    expect([sandbox.id]).toEqual(waiting);
    expect(await ids()).toEqual(waiting);
    // A claim on an empty set does not wait for that.
    expect((await pool.claim(spec("shop"), signal)).id).not.toBe(sandbox.id);
  });

  it("never starts more at once than the limit, and claimed ones before those ahead", async () => {
    let starting = 0;
    let most = 0;
    const { pool, ids } = openPool({ min: 3, limits: { each: 3, perOwner: 3, total: 3 } }, (program) => async (sandboxSpec, self) => {
      most = Math.max(most, ++starting);
      const answer = await program(sandboxSpec, self);
      await new Promise((resolve) => setImmediate(resolve));
      starting--;
      return answer;
    });
    const claims = Array.from({ length: 8 }, () => pool.claim(spec("shop"), signal));
    await Promise.all(claims);
    // A single one ahead of need may have begun before the first claim.
    expect((await ids()).length).toBeLessThanOrEqual(claims.length + 2);
    expect(most).toBe(2);
  });

  it("starts and prepares processes from the template of their environment, and uses no others for it", async () => {
    const templates: (string | undefined)[] = [];
    const { pool } = openPool({ min: 1, limits: { each: 1, perOwner: 1, total: 2 } }, (program) => async (sandboxSpec, self) => {
      templates.push(sandboxSpec.template);
      return program(sandboxSpec, self);
    });
    await pool.warmUp();
    const gpu = { ...prepared("shop", { warm: 1 }), template: "gpu" };
    await pool.claim(gpu, signal);
    await settled(pool, `${gpu.digest} gpu`, 1);
    await pool.claim(prepared("shop"), signal);
    expect(templates.slice(0, 3)).toEqual([undefined, "gpu", "gpu"]);
  });

  it("gives up a waiting process for one that is needed, when there is no room for both", async () => {
    const asked: (boolean | undefined)[] = [];
    let room = 1;
    const { pool, ids } = openPool({ min: 1, limits: { each: 1, perOwner: 1, total: 1 } }, (program) => async (sandboxSpec, self) => {
      asked.push(sandboxSpec.isAhead);
      if (room === 0) throw new PlatformError("sandbox.no_capacity", "no room");
      room--;
      void self.exited.then(() => room++);
      return program(sandboxSpec, self);
    });
    await pool.warmUp();
    const [waiting] = await ids();
    // No waiting process has its runtime.
    const claimed = await pool.claim({ ...spec("shop"), runtime: "runsc" }, signal);
    expect(await ids()).toEqual([claimed.id]);
    expect(claimed.id).not.toBe(waiting);
    await expect(pool.claim({ ...spec("other"), runtime: "runsc" }, signal)).rejects.toMatchObject({ code: "sandbox.no_capacity" });
    expect(asked.slice(0, 3)).toEqual([true, undefined, undefined]);
  });

  it("grows with the claims, up to its limit, and shrinks without claims", async () => {
    const { pool, clock, ids } = openPool();
    const claimed: Sandbox[] = [];
    for (let n = 0; n < 200; n++) {
      clock.now += 20;
      claimed.push(await pool.claim(spec("shop"), signal));
    }
    await settled(pool, "blank", 4);
    clock.now += 5 * 60_000;
    await pool.trim();
    expect(pool.sizes().get("blank")).toEqual({ ready: 0, target: 0 });
    expect((await ids()).sort()).toEqual(claimed.map(({ id }) => id).sort());
  });

  it("prepares processes for a bundle that is claimed again, and forgets the bundle when it is not", async () => {
    const { pool, clock, ids } = openPool();
    const shop = prepared("shop");
    await pool.claim(shop, signal);
    await settled(pool, shop.digest, 1);
    const before = await ids();
    expect(before).toContain((await pool.claim(shop, signal)).id);
    clock.now += 5 * 60_000;
    await settled(pool, shop.digest, 1);
    await pool.trim();
    expect([...pool.sizes().keys()]).toEqual(["blank"]);
    expect(await ids()).toHaveLength(2);
  });

  it("never returns a process that was prepared with other variables, and destroys those when the environment's change", async () => {
    const { pool, ids } = openPool({ min: 0 });
    const before = { ...prepared("shop"), variables: { A: "1" } };
    await pool.claim(before, signal);
    await settled(pool, "sha256:shop", 1);
    const known = await ids();
    const sandbox = await pool.claim({ ...before, variables: { A: "2" } }, signal);
    expect(known).not.toContain(sandbox.id);
    await settled(pool, "sha256:shop", 1);
    await vi.waitFor(async () => expect((await ids()).filter((id) => known.includes(id))).toHaveLength(1));
  });

  it("keeps as many prepared as an environment wants", async () => {
    const { pool, clock } = openPool();
    const shop = prepared("shop", { warm: 2 });
    await pool.claim(shop, signal);
    clock.now += 5 * 60_000;
    await pool.trim();
    await settled(pool, shop.digest, 2);
  });

  it("replaces processes that died while idle, and never returns a dead one", async () => {
    const { pool, engine, ids } = openPool({ min: 1, limits: { each: 1, perOwner: 1, total: 1 } });
    await pool.warmUp();
    const [first = ""] = await ids();
    // Both at once: the exit is not known yet when the process is claimed.
    const [, sandbox] = await Promise.all([engine.crash(first, "out of memory"), pool.claim(spec("shop"), signal)]);
    expect(sandbox.id).not.toBe(first);
    await settled(pool, "blank", 1);
    const [second = ""] = (await ids()).filter((id) => id !== sandbox.id);
    await engine.crash(second, "out of memory");
    await vi.waitFor(() => expect(pool.sizes().get("blank")?.ready).toBe(0));
    await pool.trim();
    await settled(pool, "blank", 1);
    expect(await ids()).not.toContain(second);
  });

  it("reports why a bundle cannot be loaded, and keeps no process of it", async () => {
    const { pool, ids } = openPool();
    await expect(pool.claim(spec("broken"), signal)).rejects.toThrow("main.js:1: this bundle is broken");
    await expect(pool.claim(prepared("broken"), signal)).rejects.toMatchObject({ code: "environment.invalid" });
    await vi.waitFor(async () => expect(await ids()).toEqual(await blankOnly(pool, ids)));
  });

  it("reports the exit reason of a process that ended while it loaded a bundle", async () => {
    const { pool } = openPool({}, (program) => async (sandboxSpec, self) => {
      const answer = await program(sandboxSpec, self);
      return (request, response) => (request.url === "/bind" ? void self.exit("exit code 3: no such module") : answer(request, response));
    });
    await expect(pool.claim(spec("shop"), signal)).rejects.toThrow("the sandbox ended: exit code 3: no such module");
  });

  it("holds no more processes than the limits allow, whatever environments reserve", async () => {
    const { pool, ids } = openPool({ limits: { each: 4, perOwner: 5, total: 8 } });
    const claimed: Sandbox[] = [];
    for (const [owner, name] of [
      ["ada", "shop"],
      ["ada", "bank"],
      ["bob", "farm"],
      ["eve", "mill"],
    ] as const)
      claimed.push(await pool.claim(prepared(name, { owner, warm: 1_000 }), signal));
    await pool.trim();
    await vi.waitFor(() => expect(readyIn(pool)).toBe(8));
    await pool.trim();
    expect(await ids()).toHaveLength(claimed.length + 8);
    const { shop, bank, farm, mill } = Object.fromEntries(
      ["shop", "bank", "farm", "mill"].map((name) => [name, pool.sizes().get(`sha256:${name}`)?.ready ?? 0]),
    ) as Record<string, number>;
    expect((shop ?? 0) + (bank ?? 0)).toBeLessThanOrEqual(5);
    for (const count of [shop, bank, farm, mill]) expect(count).toBeGreaterThan(0);
  });

  it("destroys the processes of a deleted version, also those being started", async () => {
    let begin: () => void = () => {};
    let release: () => void = () => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const gate = new Promise<void>((resolve) => (release = resolve));
    let started = 0;
    const { pool, ids, status } = openPool({}, (program) => async (sandboxSpec, self) => {
      // The first is claimed, the next two wait, and the one after is still starting when the version is deleted.
      if (++started === 4) {
        begin();
        await gate;
      }
      return program(sandboxSpec, self);
    });
    const shop = prepared("shop", { warm: 2 });
    const claimed = await pool.claim(shop, signal);
    await pool.trim();
    await begun;
    status.set("shop", "gone");
    await pool.trim();
    release();
    await vi.waitFor(async () => expect(await ids()).toEqual([claimed.id, ...(await blankIds(pool, ids, [claimed.id]))]));
    expect(pool.sizes().has(shop.digest)).toBe(false);
  });

  it("keeps no reserve for a superseded version, and prepares it only while it is claimed", async () => {
    const { pool, clock, status } = openPool();
    const shop = prepared("shop", { warm: 3 });
    await pool.claim(shop, signal);
    await pool.trim();
    await settled(pool, shop.digest, 4);
    status.set("shop", "superseded");
    await pool.trim();
    await settled(pool, shop.digest, 1);
    clock.now += 5 * 60_000;
    await pool.trim();
    expect(pool.sizes().has(shop.digest)).toBe(false);
  });

  it("keeps warm processes while the status of their version cannot be read", async () => {
    const { pool, clock } = openPool({ versionStatus: () => Promise.reject(new Error("the store is away")) });
    const shop = prepared("shop");
    await pool.claim(shop, signal);
    await settled(pool, shop.digest, 1);
    await pool.trim();
    await settled(pool, shop.digest, 1);
    clock.now += 5 * 60_000;
    await pool.trim();
    expect(pool.sizes().has(shop.digest)).toBe(false);
  });

  it("keeps as many prepared processes ready as the last fork took, for two minutes, within the owner's limit", async () => {
    const { pool, clock, ids } = openPool({ limits: { each: 2, perOwner: 6, total: 100 } });
    const forks = { ...prepared("shop"), together: 5 };
    const fork = () => Promise.all(Array.from({ length: forks.together }, () => pool.claim(forks, signal)));
    await fork();
    await settled(pool, forks.digest, 5);
    const before = await ids();
    for (const { id } of await fork()) expect(before).toContain(id);
    await Promise.all(Array.from({ length: 9 }, () => pool.claim({ ...forks, together: 9 }, signal)));
    await settled(pool, forks.digest, 6);
    clock.now += 130_000;
    await pool.trim();
    expect(pool.sizes().has(forks.digest)).toBe(false);
  });

  it("retries a bundle that cannot be prepared with backoff, and reports the cause once", async () => {
    let binds = 0;
    const { pool, clock, failures } = openPool({}, (program) => async (sandboxSpec, self) => {
      const answer = await program(sandboxSpec, self);
      return (request, response) => {
        if (request.url === "/bind") binds++;
        answer(request, response);
      };
    });
    const broken = prepared("broken", { warm: 2 });
    await expect(pool.claim(broken, signal)).rejects.toThrow("this bundle is broken");
    await vi.waitFor(() => expect(pool.failingSets).toBe(1));
    expect(binds).toBe(2);
    let tries = 0;
    for (let second = 0; second < 600; second += 3) {
      clock.now += 3_000;
      const before = binds;
      await pool.trim();
      // A fill that begins at all has begun when trim resolves; it is over when there is a newer failure.
      await pool.warmUp();
      tries += binds - before;
    }
    // After 2, 4, 8 ... seconds, and not in each of 200 rounds.
    expect(tries).toBeLessThanOrEqual(9);
    expect(tries).toBeGreaterThanOrEqual(6);
    expect(failures).toEqual([["broken@1.0.0", "main.js:1: this bundle is broken"]]);
  });

  it("leaves no process when it closes, not even one being started", async () => {
    let begin: () => void = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { pool, ids } = openPool({ min: 3, limits: { each: 3, perOwner: 3, total: 3 } }, (program) => async (sandboxSpec, self) => {
      begin();
      return program(sandboxSpec, self);
    });
    const filling = pool.warmUp();
    await begun;
    await pool.close();
    await filling.catch(() => {});
    expect(await ids()).toEqual([]);
  });
});

/** The ids of the ready blank processes, without the known ones. */
async function blankIds(pool: Pool, ids: () => Promise<string[]>, known: readonly string[]): Promise<string[]> {
  const others = (await ids()).filter((id) => !known.includes(id));
  return others.slice(0, pool.sizes().get("blank")?.ready ?? 0);
}

/** The ids of all ready blank processes. */
async function blankOnly(pool: Pool, ids: () => Promise<string[]>): Promise<string[]> {
  const found = await ids();
  return found.slice(0, pool.sizes().get("blank")?.ready ?? 0);
}
