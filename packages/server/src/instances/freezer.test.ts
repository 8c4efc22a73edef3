import { defineEnvironment, type EnvironmentDefinition } from "@aenv/kit";
import type { MemorySandbox, SandboxSnapshots } from "@aenv/sandbox";
import { describe, expect, it, vi } from "vitest";
import { MemoryGate } from "../slots/memory-gate.ts";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

const isolated = { isolation: "instance" };

async function open() {
  const world = openWorld({ freezes: true });
  const ref = await world.publish(ada, "counter", isolated);
  const isFrozen = async () => (await world.engine.list()).map((sandbox) => (sandbox as MemorySandbox).isFrozen);
  return { world, ref, isFrozen };
}

describe("an idle instance", () => {
  it("is frozen after the set time, and continued by the next call, which is answered", async () => {
    const { world, ref, isFrozen } = await open();
    const server = openTestServer(world, { freezeSeconds: 60 });
    const row = await server.create(ref);
    world.later(59);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([false]);
    world.later(1);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([true]);
    const frozen = await server.instances.get(row.id, ada);
    expect(frozen.isFrozen).toBe(true);
    server.instances.uses.begin(frozen);
    expect(await server.count(frozen)).toBeDefined();
    server.instances.uses.end(frozen);
    await expect.poll(async () => (await server.instances.get(row.id, ada)).isFrozen).toBe(false);
    expect(server.instances.frozenTotals.frozenMs).toBeGreaterThan(0);
    expect(server.failures).toEqual([]);
  });

  it("saves the CPU time that its sandboxes have used while they were idle, those of its task included", async () => {
    const environment = defineEnvironment({ setup: async ({ sandboxes }) => void (await sandboxes.open()) }) as EnvironmentDefinition;
    const world = openWorld({ freezes: true, images: true }, environment);
    const ref = await world.publish(ada, "shop", { ...isolated, taskSandboxes: { images: [] } });
    const server = openTestServer(world, { freezeSeconds: 60, freezeMeasureMs: 20 });
    const row = await server.create(ref);
    const sandboxes = (await world.engine.list()) as MemorySandbox[];
    for (const sandbox of sandboxes) sandbox.cpuRate = 1;
    world.later(60);
    await server.instances.sweep();
    expect(sandboxes.map(({ isFrozen }) => isFrozen)).toEqual([true, true]);
    expect(server.instances.frozenTotals).toEqual({ savedCpuMs: 0, frozenMs: 0 });
    await server.instances.fork(row.id, 1, { caller: ada, signal: server.signal }).catch(() => {});
    const { savedCpuMs, frozenMs } = server.instances.frozenTotals;
    // Both together use up to two milliseconds in each.
    expect(savedCpuMs / frozenMs).toBeGreaterThan(1.2);
    expect(savedCpuMs / frozenMs).toBeLessThanOrEqual(2);
    expect(server.failures).toEqual([]);
  });

  it("is not frozen during a call, and is frozen again when it is idle again", async () => {
    const { world, ref, isFrozen } = await open();
    const server = openTestServer(world, { freezeSeconds: 60 });
    const row = await server.create(ref);
    server.instances.uses.begin(row);
    world.later(300);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([false]);
    server.instances.uses.end(row);
    const used = async () => (await server.instances.get(row.id, ada)).lastUsedAt;
    await expect.poll(used).toBe(world.clock.now.toISOString());
    world.later(60);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([true]);
  });

  it("is frozen after the time of its environment, and ends at its own time", async () => {
    const { world, isFrozen } = await open();
    const ref = await world.publish(ada, "impatient", { ...isolated, freezeAfter: "5s", ttl: "1m" });
    const server = openTestServer(world);
    const row = await server.create(ref);
    world.later(5);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([true]);
    world.later(55);
    await server.instances.sweep();
    expect((await server.instances.get(row.id, ada)).status).toBe("Terminated");
    await expect.poll(isFrozen).toEqual([]);
  });

  it("is continued by another server that read its row before it was frozen", async () => {
    const { world, ref, isFrozen } = await open();
    const one = openTestServer(world, { freezeSeconds: 60, isAlone: false });
    const two = openTestServer(world, { freezeSeconds: 60, isAlone: false });
    const before = await one.create(ref);
    world.later(60);
    await one.instances.sweep();
    expect(await isFrozen()).toEqual([true]);
    two.instances.uses.begin(before);
    expect(await two.count(before)).toBeDefined();
    await expect.poll(isFrozen).toEqual([false]);
  });

  it("is continued when another server adopts it", async () => {
    const { world, ref } = await open();
    const first = openTestServer(world, { freezeSeconds: 60 });
    const row = await first.create(ref);
    world.later(60);
    await first.instances.sweep();
    await first.instances.close(0);
    const next = openTestServer(world, { freezeSeconds: 60 });
    expect(await next.recovery.run()).toMatchObject({ adopted: 1, failed: 0 });
    const adopted = await next.instances.get(row.id, ada);
    expect(adopted).toMatchObject({ status: "Running", server: next.serverId });
    next.instances.uses.begin(adopted);
    expect(await next.count(adopted)).toBeDefined();
  });

  it("is continued before it is forked or stored, and is neither frozen nor ended until that is done", async () => {
    const { world, ref, isFrozen } = await open();
    const server = openTestServer(world, { freezeSeconds: 60, idleSeconds: 240 });
    const row = await server.create(ref);
    const freeze = async () => {
      world.later(60);
      await server.instances.sweep();
      expect(await isFrozen()).toEqual([true]);
    };
    const signal = new AbortController().signal;
    await freeze();
    await server.instances.store(row.id, { name: "kept" }, { caller: ada, signal });
    expect(await isFrozen()).toEqual([false]);
    await freeze();
    const held = world.hold("/fork-spec");
    const forking = server.instances.fork(row.id, 1, { caller: ada, signal });
    const response = await held;
    world.later(300);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([false]);
    response.writeHead(500).end();
    await expect(forking).rejects.toThrow();
    expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Running", isFrozen: false });
    expect(await server.instances.fork(row.id, 1, { caller: ada, signal })).toMatchObject([{ status: "Running" }]);
    expect(server.failures).toEqual([]);
  });

  it("that is being frozen when a fork begins is continued before its sandbox is copied", async () => {
    const world = openWorld({ freezes: true, snapshots: ["files"] });
    const ref = await world.publish(ada, "counter", isolated);
    const server = openTestServer(world, { freezeSeconds: 60 });
    const row = await server.create(ref);
    const [sandbox] = (await world.engine.list()) as [MemorySandbox];
    const { freezing, snapshots } = sandbox as Required<MemorySandbox>;
    const copied: boolean[] = [];
    const take: SandboxSnapshots["take"] = (...args) => {
      copied.push(sandbox.isFrozen);
      return snapshots.take(...args);
    };
    let forking: Promise<unknown> | undefined;
    const freeze = async () => {
      forking = server.instances.fork(row.id, 1, { caller: ada, signal: new AbortController().signal }, "files");
      await freezing.freeze();
    };
    Object.assign(sandbox, { snapshots: { ...snapshots, take }, freezing: { ...freezing, freeze } });
    world.later(60);
    await server.instances.sweep();
    expect(await forking).toMatchObject([{ status: "Running" }]);
    expect(copied).toEqual([false]);
  });

  it("that a call continues while it is being frozen is frozen again later", async () => {
    const { world, ref, isFrozen } = await open();
    const server = openTestServer(world, { freezeSeconds: 60 });
    const row = await server.create(ref);
    const [sandbox] = (await world.engine.list()) as [MemorySandbox];
    const { freezing } = sandbox;
    const freeze = async () => {
      const called = await server.instances.get(row.id, ada);
      server.instances.uses.begin(called);
      await vi.waitFor(async () => expect((await server.instances.get(row.id, ada)).isFrozen).toBe(false));
      server.instances.uses.end(called);
      throw new Error("it did not freeze in time");
    };
    Object.assign(sandbox, { freezing: { ...freezing, freeze } });
    world.later(60);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([false]);
    Object.assign(sandbox, { freezing });
    world.later(60);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([true]);
  });

  it("is never frozen if it shares a process", async () => {
    const { world, isFrozen } = await open();
    const shared = await world.publish(ada, "shared", { isolation: "shared" });
    const server = openTestServer(world, { freezeSeconds: 60 });
    expect((await server.create(shared)).freezeSeconds).toBeUndefined();
    world.later(61);
    await server.instances.sweep();
    expect(await isFrozen()).toEqual([false]);
  });
});

describe("a start while the machine is short of memory", () => {
  it("waits with the reason in the events of the instance, and then succeeds", async () => {
    const { world, ref } = await open();
    const memory = { available: 10 };
    const memoryGate = new MemoryGate({ minBytes: 1024 ** 2, availableBytes: () => memory.available, pollMs: 1 });
    const server = openTestServer(world, { memoryGate });
    const starting = server.create(ref);
    await expect.poll(() => server.changes.at(-1)?.events.at(-1)?.what).toMatch(/waiting for memory: the machine has 0 MiB/);
    memory.available = 2 * 1024 ** 2;
    expect(await starting).toMatchObject({ status: "Running" });
  });

  it("waits also if it is a fork with the memory of its parent", async () => {
    const world = openWorld({ freezes: true, images: true, snapshots: ["memory"] });
    await world.hub.publish({ name: "shop", version: "1.0.0", artifacts: [{ type: "image", content: "team/shop" }] }, ada, {});
    const memory = { available: 2 * 1024 ** 2 };
    const memoryGate = new MemoryGate({ minBytes: 1024 ** 2, availableBytes: () => memory.available, pollMs: 1 });
    const server = openTestServer(world, { memoryGate });
    const parent = await server.create("shop@1.0.0");
    const [sandbox] = (await world.engine.list()) as [MemorySandbox];
    sandbox.saveMemory = async () => "its memory";
    memory.available = 10;
    const forking = server.instances.fork(parent.id, 2, { caller: ada, signal: server.signal }, "memory");
    const waiting = () =>
      new Set(
        server.changes
          .filter(({ id, events }) => id !== parent.id && /waiting for memory/.test(events.at(-1)?.what ?? ""))
          .map(({ id }) => id),
      );
    await expect.poll(() => waiting().size).toBe(2);
    expect(await world.engine.list()).toHaveLength(1);
    memory.available = 2 * 1024 ** 2;
    expect(await forking).toMatchObject([{ status: "Running" }, { status: "Running" }]);
  });
});
