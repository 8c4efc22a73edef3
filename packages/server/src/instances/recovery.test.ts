import { setImmediate } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { requestSandbox } from "../sandboxes/client.ts";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";
import type { InstanceRow } from "./row.ts";

const SHARED = { isolation: "shared" };

/** The instances in the process of a shared sandbox, and a way to create one there that has no row. */
function inProcessOf({ slot }: InstanceRow, { clients }: ReturnType<typeof openTestServer>) {
  if (slot === null) throw new Error("no slot");
  const ask = (method: "GET" | "POST", path: string, body?: unknown) =>
    requestSandbox(clients, slot.sandboxId, slot.address, {
      method,
      path,
      timeoutMs: 5_000,
      maxBytes: 1_000_000,
      ...(body !== undefined && { body }),
    });
  return {
    list: async () => ((await ask("GET", "/env-instance/list")) as { items: { id: string }[] }).items.map(({ id }) => id),
    create: (id: string) => ask("POST", "/env-instance", { id }),
  };
}

/** A killed server, which does nothing any more, and the next one, with the sandboxes and rows of the first. */
async function openTwo() {
  const world = openWorld();
  const dead = openTestServer(world);
  await dead.maintenance.open();
  const shop = await world.publish(ada, "shop", {});
  const bank = await world.publish(ada, "bank", SHARED);
  return { world, dead, next: openTestServer(world), shop, bank };
}

describe("a server that starts after another was killed", () => {
  it("adopts instances that still run, and ends them when they expire", async () => {
    const { world, dead, next, shop, bank } = await openTwo();
    const rows = [await dead.create(shop), await dead.create(bank), await dead.create(bank)];
    for (const row of rows) await dead.count(row);
    expect(await next.maintenance.open()).toEqual({ adopted: 3, failed: 0, ended: 0 });
    for (const row of rows) {
      expect(await next.count(row)).toBe(2);
      expect(await next.instances.get(row.id, ada)).toMatchObject({ status: "Running", server: next.serverId });
    }
    expect([next.slots.hostCount, next.failures]).toEqual([1, []]);
    expect((await next.create(bank)).slot?.sandboxId).toBe(rows[1]?.slot?.sandboxId);
    world.later(31 * 60);
    await next.instances.sweep();
    expect(await next.rows.count("live", "yes")).toBe(0);
  });

  it("marks instances without a ready sandbox as failed, and destroys sandboxes without an instance", async () => {
    const { world, dead, next, shop } = await openTwo();
    world.gate("setup");
    const context = { caller: ada, signal: dead.signal };
    const { id } = await dead.instances.create({ envName: shop, environment_variables: { GATE: "setup" } }, context);
    const crashed = await dead.create(shop);
    await world.engine.crash(crashed.slot?.sandboxId ?? "", "out of memory");
    await vi.waitFor(async () => expect(await dead.instances.get(crashed.id, ada)).toMatchObject({ status: "Failed" }));
    // As if the dead server had not stored the failure.
    await dead.rows.update(crashed.id, () => crashed);
    expect(await next.maintenance.open()).toEqual({ adopted: 0, failed: 2, ended: 1 });
    expect(await world.engine.list()).toEqual([]);
    const reason = "its sandbox was gone, or not ready, when the server came back";
    expect(await next.instances.get(id, ada)).toMatchObject({ status: "Failed", reason, reasonCode: "instance.start_failed" });
    expect(await next.instances.get(crashed.id, ada)).toMatchObject({ status: "Failed", reason, reasonCode: null });
  });

  it("ends instances without a row in shared sandboxes, at once and again when no start can be in progress any more", async () => {
    const { world, dead, next, bank } = await openTwo();
    const row = await dead.create(bank);
    const process = inProcessOf(row, next);
    await process.create("early");
    await next.maintenance.open();
    expect(await process.list()).toEqual([row.id]);
    await process.create("late");
    const other = await next.create(bank);
    await next.recovery.settle();
    expect(await process.list()).toHaveLength(3);
    world.later(6);
    await next.recovery.settle();
    expect((await process.list()).sort()).toEqual([row.id, other.id].sort());
  });

  it("cleans up again if the store was unavailable when no start could be in progress any more", async () => {
    const { world, dead, next, bank } = await openTwo();
    const row = await dead.create(bank);
    const process = inProcessOf(row, next);
    await next.maintenance.open();
    await process.create("late");
    world.later(6);
    world.cut(true);
    await expect(next.recovery.settle()).rejects.toThrow("cut");
    world.cut(false);
    await next.recovery.settle();
    expect(await process.list()).toEqual([row.id]);
  });

  it("ends all forks of a request if not all were ready", async () => {
    const { world, dead, next, shop } = await openTwo();
    const parent = await dead.create(shop);
    const forks = await dead.instances.fork(parent.id, 3, { caller: ada, signal: dead.signal, idempotencyKey: "k" });
    const last = forks.at(-1);
    await dead.rows.update(last?.id ?? "", (row) => ({ ...row, status: "Creating", slot: null }));
    expect(await next.maintenance.open()).toMatchObject({ adopted: 1 });
    expect((await world.engine.list()).map(({ id }) => id)).toEqual([parent.slot?.sandboxId]);
    expect(await next.rows.count("live", "yes")).toBe(1);
    const again = next.instances.fork(parent.id, 3, { caller: ada, signal: dead.signal, idempotencyKey: "k" });
    await expect(again).rejects.toMatchObject({ code: "instance.start_failed" });
  });

  it("adopts the other forks of a request if one was lost after all had run", async () => {
    const { world, dead, next, shop } = await openTwo();
    const parent = await dead.create(shop);
    const forks = await dead.instances.fork(parent.id, 3, { caller: ada, signal: dead.signal });
    const [lost, ...others] = forks;
    await world.engine.crash(lost?.slot?.sandboxId ?? "", "out of memory");
    await vi.waitFor(async () => expect(await dead.instances.get(lost?.id ?? "", ada)).toMatchObject({ status: "Failed" }));
    // As if the dead server had not stored the failure.
    await dead.rows.update(lost?.id ?? "", () => lost ?? null);
    expect(await next.maintenance.open()).toEqual({ adopted: 3, failed: 1, ended: 0 });
    for (const { id } of others) expect(await next.instances.get(id, ada)).toMatchObject({ status: "Running" });
  });

  it("recovers also if several servers before it were killed during their recovery", async () => {
    const { world, dead, next, shop, bank } = await openTwo();
    const rows = [await dead.create(shop), await dead.create(bank)];
    await next.peers.heartbeat();
    const { dead: claimed } = await next.peers.claimDeadServers();
    expect(claimed).toHaveLength(1);
    await next.instances.handover.adopt(rows[0] as (typeof rows)[0]);
    const third = openTestServer(world);
    expect(await third.maintenance.open()).toEqual({ adopted: 2, failed: 0, ended: 0 });
    const fourth = openTestServer(world);
    expect(await fourth.maintenance.open()).toEqual({ adopted: 2, failed: 0, ended: 0 });
    for (const row of rows) expect(await fourth.count(row)).toBe(1);
    await fourth.maintenance.close(1_000);
    expect([await world.engine.list(), await fourth.rows.count("live", "yes")]).toEqual([[], 0]);
  });
});

describe("servers on one store", () => {
  async function openPair() {
    const world = openWorld();
    const [one, other] = [openTestServer(world, { isAlone: false }), openTestServer(world, { isAlone: false })];
    await one.maintenance.open();
    await other.maintenance.open();
    const shop = await world.publish(ada, "shop", {});
    const bank = await world.publish(ada, "bank", SHARED);
    return { world, one, other, shop, bank };
  }

  it("do not touch each other's sandboxes", async () => {
    const { world, one, other, shop } = await openPair();
    await one.create(shop);
    expect(await other.recovery.run()).toEqual({ adopted: 0, failed: 0, ended: 0 });
    expect(await world.engine.list()).toHaveLength(1);
  });

  it("end each other's instances and release their slots", async () => {
    const { world, one, other, shop, bank } = await openPair();
    const [apart, placed] = [await one.create(shop), await one.create(bank)];
    await other.instances.destroy(apart.id, ada);
    await vi.waitFor(async () => expect(await world.engine.list()).toHaveLength(1));
    await other.instances.destroy(placed.id, ada);
    await expect(one.count(placed)).rejects.toThrow("not found in this process");
    await one.recovery.settle();
    expect(await one.rows.count("leaving", one.serverId)).toBe(0);
    world.later(61);
    await one.slots.closeIdleHosts(60_000);
    expect(await world.engine.list()).toEqual([]);
  });

  it("fork into each other's processes, and the server of a process reports its exit", async () => {
    const { world, one, other, bank } = await openPair();
    const parent = await one.create(bank);
    const [fork] = await other.instances.fork(parent.id, 1, { caller: ada, signal: other.signal });
    expect(fork).toMatchObject({ status: "Running", server: one.serverId });
    await one.instances.destroy(parent.id, ada);
    world.later(61);
    await one.slots.closeIdleHosts(60_000);
    if (fork === undefined) throw new Error("no fork");
    expect(await other.count(fork)).toBe(1);
    await world.engine.crash(parent.slot?.sandboxId ?? "", "out of memory");
    await vi.waitFor(async () =>
      expect(await other.instances.get(fork.id, ada)).toMatchObject({ status: "Failed", reason: "out of memory" }),
    );
  });

  it("end the forks that a server was making in the process of another when it died", async () => {
    const { world, one, other, bank } = await openPair();
    const parent = await one.create(bank);
    const process = inProcessOf(parent, one);
    const forks = await other.instances.fork(parent.id, 2, { caller: ada, signal: other.signal });
    // As if it had died before it stored that the second fork runs.
    const late = forks[1]?.id ?? "";
    await one.rows.update(late, (row) => ({ ...row, status: "Creating", server: other.serverId }));
    await other.peers.leave();
    await one.maintenance.tidy();
    expect(await process.list()).toEqual([parent.id]);
    for (const { id } of forks) expect(await one.instances.get(id, ada)).toMatchObject({ status: "Failed" });
    // As if its request had come to the process after that.
    await process.create(late);
    world.later(6);
    await one.maintenance.tidy();
    expect([await process.list(), one.failures]).toEqual([[parent.id], []]);
  });

  it("hand over their instances at shutdown, and the last one ends them", async () => {
    const { world, one, other, shop, bank } = await openPair();
    const rows = [await one.create(shop), await one.create(bank), await other.create(bank)];
    await one.maintenance.close(1_000);
    await other.maintenance.tidy();
    for (const row of rows) expect(await other.instances.get(row.id, ada)).toMatchObject({ status: "Running", server: other.serverId });
    expect(await world.engine.list()).toHaveLength(3);
    await other.maintenance.close(1_000);
    expect([await world.engine.list(), await other.rows.count("live", "yes"), other.failures]).toEqual([[], 0, []]);
  });

  it("on two machines notice the loss of one within its lease and a round, adopt its instances and double none", async () => {
    const world = openWorld();
    const onMachine = (machine: string) => openTestServer(world, { isAlone: false, machine });
    const [lost, left] = [onMachine("pod-1"), onMachine("pod-2")];
    await lost.maintenance.open();
    await left.maintenance.open();
    const [shop, bank] = [await world.publish(ada, "shop", {}), await world.publish(ada, "bank", SHARED)];
    const rows = [await lost.create(shop), await lost.create(bank), await lost.create(bank)];
    for (const row of rows) await lost.count(row);
    const round = async () => {
      world.later(3);
      await left.peers.heartbeat();
      await left.maintenance.tidy();
    };
    // The lease is ten seconds, counted from the last heartbeat that the other has seen.
    for (let at = 0; at < 3; at++) await round();
    for (const { id } of rows) expect(await left.instances.get(id, ada)).toMatchObject({ server: lost.serverId });
    for (let at = 0; at < 2; at++) await round();
    for (const row of rows) {
      expect(await left.instances.get(row.id, ada)).toMatchObject({ status: "Running", server: left.serverId });
      expect(await left.count(row)).toBe(2);
    }
    expect(await world.engine.list()).toHaveLength(2);
  });

  it("that shut down at the same time leave nothing", async () => {
    const { world, one, other, shop } = await openPair();
    await Promise.all([one.create(shop), other.create(shop)]);
    await Promise.all([one.maintenance.close(1_000), other.maintenance.close(1_000)]);
    await setImmediate();
    expect([await world.engine.list(), await one.rows.count("live", "yes")]).toEqual([[], 0]);
  });
});
