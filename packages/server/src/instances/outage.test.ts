import { describe, expect, it, vi } from "vitest";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

async function open() {
  const world = openWorld();
  const server = openTestServer(world);
  await server.maintenance.open();
  return { world, server, ref: await world.publish(ada, "shop", {}) };
}

describe("while the store is unavailable", () => {
  it("the exit of a sandbox is stored in its instance's row as soon as the store is back", async () => {
    const { world, server, ref } = await open();
    const row = await server.create(ref);
    world.cut(true);
    await world.engine.crash(row.slot?.sandboxId ?? "", "out of memory");
    await expect(server.instances.get(row.id, ada)).rejects.toMatchObject({ code: "store.unavailable" });
    world.cut(false);
    await vi.waitFor(
      async () => expect(await server.instances.get(row.id, ada)).toMatchObject({ status: "Failed", reason: "out of memory" }),
      5_000,
    );
  });

  it("a start that cannot be stored is undone", async () => {
    const { world, server, ref } = await open();
    const go = world.gate("setup");
    const context = { caller: ada, signal: server.signal };
    const { id } = await server.instances.create({ envName: ref, environment_variables: { GATE: "setup" } }, context);
    const started = server.instances.started(id, 5_000, ada);
    started.catch(() => {});
    await vi.waitFor(async () => expect(await world.engine.list()).toHaveLength(1));
    world.cut(true);
    go();
    await vi.waitFor(async () => expect(await world.engine.list()).toEqual([]));
    world.cut(false);
    await expect(started).rejects.toMatchObject({ code: "store.unavailable" });
    expect(await server.instances.get(id, ada)).toMatchObject({ status: "Failed", reasonCode: "store.unavailable" });
  });

  it("a server that is stopped destroys its sandboxes, and the next one corrects their rows", async () => {
    const { world, server, ref } = await open();
    const row = await server.create(ref);
    world.gate("setup");
    const { id } = await server.instances.create(
      { envName: ref, environment_variables: { GATE: "setup" } },
      { caller: ada, signal: server.signal },
    );
    world.cut(true);
    await server.maintenance.close(10);
    expect(server.failures).not.toEqual([]);
    expect(await world.engine.list()).toEqual([]);
    world.cut(false);
    const next = openTestServer(world);
    expect(await next.maintenance.open()).toMatchObject({ adopted: 0, failed: 2 });
    for (const one of [row.id, id]) expect(await next.instances.get(one, ada)).toMatchObject({ status: "Failed" });
  });

  it("a server that is stopped destroys only its own sandboxes, not those of another server at the same location", async () => {
    const { world, server, ref } = await open();
    const other = openTestServer(world, { isAlone: false });
    await server.create(ref);
    const kept = await other.create(ref);
    world.cut(true);
    await server.maintenance.close(10);
    expect((await world.engine.list()).map(({ id }) => id)).toEqual([kept.slot?.sandboxId]);
    world.cut(false);
    expect(await other.count(kept)).toBe(1);
  });

  it("maintenance continues", async () => {
    const { world, server, ref } = await open();
    const row = await server.create(ref);
    world.cut(true);
    await server.maintenance.tidy();
    expect(server.failures.length).toBeGreaterThan(0);
    world.cut(false);
    const before = server.failures.length;
    await server.maintenance.tidy();
    expect(server.failures).toHaveLength(before);
    expect(await server.count(row)).toBe(1);
  });
});
