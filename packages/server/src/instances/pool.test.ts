import { defineEnvironment } from "@aenv/kit";
import { type Box, MemoryEngine, type MemoryProgram } from "@aenv/sandbox";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BoxClients } from "./box-client.ts";
import { kitRunner } from "./fixtures/runner.ts";
import { type ClaimSpec, Pool, type PoolOptions } from "./pool.ts";

const { signal } = new AbortController();

function openPool(options: Partial<PoolOptions> = {}, wrap: (program: MemoryProgram) => MemoryProgram = (program) => program) {
  const tree = temporaryTree();
  const engine = new MemoryEngine({ start: wrap(kitRunner(defineEnvironment({ tools: [] }), tree.path)) });
  const clients = new BoxClients();
  const clock = { now: 0 };
  const pool = new Pool({
    engine,
    clients,
    runner: ["runner"],
    variables: {},
    replica: "r-1",
    min: 0,
    max: 4,
    startsAtOnce: 2,
    refillAfterMs: 0,
    startTimeoutMs: 5_000,
    memoryMb: 64,
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
  return { pool, engine, clock, ids };
}

function spec(name: string, more: Partial<ClaimSpec> = {}): ClaimSpec {
  return { folder: `/bundles/${name}`, digest: `sha256:${name}`, variables: {}, mayBePrepared: false, warm: 0, ...more };
}

const settled = (pool: Pool, shelf: string, ready: number) =>
  vi.waitFor(() => expect(pool.sizes().get(shelf)).toEqual({ ready, target: ready }));

describe("a pool", () => {
  it("has as many blank processes waiting as it is told, and replaces what is claimed", async () => {
    const { pool, ids } = openPool({ min: 2, max: 2 });
    await pool.warmUp();
    const waiting = await ids();
    expect(waiting).toHaveLength(2);
    const box = await pool.claim(spec("shop"), signal);
    expect(waiting).toContain(box.id);
    await settled(pool, "blank", 2);
    expect(await ids()).toHaveLength(3);
  });

  it("begins to replace what is claimed only when whoever claimed it has had time to use it", async () => {
    const { pool, ids } = openPool({ min: 1, max: 1, refillAfterMs: 60_000 });
    await pool.warmUp();
    const waiting = await ids();
    const box = await pool.claim(spec("shop"), signal);
    expect([box.id]).toEqual(waiting);
    expect(await ids()).toEqual(waiting);
    // Whoever finds none does not wait for that.
    expect((await pool.claim(spec("shop"), signal)).id).not.toBe(box.id);
  });

  it("starts only so many at once however many are claimed, and those that are waited for first", async () => {
    let starting = 0;
    let most = 0;
    const { pool, ids } = openPool({ min: 3, max: 3 }, (program) => async (boxSpec, self) => {
      most = Math.max(most, ++starting);
      const answer = await program(boxSpec, self);
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

  it("grows with what is asked for, up to its limit, and shrinks when nobody asks any more", async () => {
    const { pool, clock, ids } = openPool();
    const claimed: Box[] = [];
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

  it("prepares processes for a bundle that is asked for again, and forgets the bundle when it is not", async () => {
    const { pool, clock, ids } = openPool();
    const shop = spec("shop", { mayBePrepared: true });
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

  it("keeps as many prepared as an environment wants", async () => {
    const { pool, clock } = openPool();
    const shop = spec("shop", { mayBePrepared: true, warm: 2 });
    await pool.claim(shop, signal);
    clock.now += 5 * 60_000;
    await pool.trim();
    await settled(pool, shop.digest, 2);
  });

  it("replaces what has died waiting, and gives nobody a dead process", async () => {
    const { pool, engine, ids } = openPool({ min: 1, max: 1 });
    await pool.warmUp();
    const [first = ""] = await ids();
    // Both at once: that it died is not known yet when it is claimed.
    const [, box] = await Promise.all([engine.crash(first, "out of memory"), pool.claim(spec("shop"), signal)]);
    expect(box.id).not.toBe(first);
    await settled(pool, "blank", 1);
    const [second = ""] = (await ids()).filter((id) => id !== box.id);
    await engine.crash(second, "out of memory");
    await vi.waitFor(() => expect(pool.sizes().get("blank")?.ready).toBe(0));
    await pool.trim();
    await settled(pool, "blank", 1);
    expect(await ids()).not.toContain(second);
  });

  it("says why a bundle cannot be taken, and keeps nothing of it", async () => {
    const { pool, ids } = openPool();
    await expect(pool.claim(spec("broken"), signal)).rejects.toThrow("main.js:1: this bundle is broken");
    await expect(pool.claim(spec("broken", { mayBePrepared: true }), signal)).rejects.toMatchObject({ code: "environment.invalid" });
    await vi.waitFor(async () => expect(await ids()).toEqual(await blankOnly(pool, ids)));
  });

  it("tells what a process said that ended while it took a bundle", async () => {
    const { pool } = openPool({}, (program) => async (boxSpec, self) => {
      const answer = await program(boxSpec, self);
      return (request, response) => (request.url === "/bind" ? void self.exit("exit code 3: no such module") : answer(request, response));
    });
    await expect(pool.claim(spec("shop"), signal)).rejects.toThrow("the box ended: exit code 3: no such module");
  });

  it("leaves nothing when it closes, not even what is just being started", async () => {
    let begin: () => void = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { pool, ids } = openPool({ min: 3, max: 3 }, (program) => async (boxSpec, self) => {
      begin();
      return program(boxSpec, self);
    });
    const filling = pool.warmUp();
    await begun;
    await pool.close();
    await filling.catch(() => {});
    expect(await ids()).toEqual([]);
  });
});

/** The ids of the blank processes that wait: all that there are. */
async function blankOnly(pool: Pool, ids: () => Promise<string[]>): Promise<string[]> {
  const found = await ids();
  return found.slice(0, pool.sizes().get("blank")?.ready ?? 0);
}
