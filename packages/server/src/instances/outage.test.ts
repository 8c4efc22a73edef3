import { describe, expect, it, vi } from "vitest";
import { ada, openRoom, openWorld } from "./fixtures/room.ts";

async function open() {
  const world = openWorld();
  const room = openRoom(world);
  await room.maintenance.open();
  return { world, room, ref: await world.publish(ada, "shop", {}) };
}

describe("while the store is unavailable", () => {
  it("the exit of a sandbox is stored in its instance's row as soon as the store is back", async () => {
    const { world, room, ref } = await open();
    const row = await room.create(ref);
    world.cut(true);
    await world.engine.crash(row.slot?.sandboxId ?? "", "out of memory");
    await expect(room.instances.get(row.id, ada)).rejects.toMatchObject({ code: "store.unavailable" });
    world.cut(false);
    await vi.waitFor(
      async () => expect(await room.instances.get(row.id, ada)).toMatchObject({ status: "Failed", reason: "out of memory" }),
      5_000,
    );
  });

  it("a start that cannot be stored is undone", async () => {
    const { world, room, ref } = await open();
    const go = world.gate("setup");
    const context = { caller: ada, signal: room.signal };
    const { id } = await room.instances.create({ envName: ref, environment_variables: { GATE: "setup" } }, context);
    const started = room.instances.started(id, 5_000, ada);
    started.catch(() => {});
    await vi.waitFor(async () => expect(await world.engine.list()).toHaveLength(1));
    world.cut(true);
    go();
    await vi.waitFor(async () => expect(await world.engine.list()).toEqual([]));
    world.cut(false);
    await expect(started).rejects.toMatchObject({ code: "store.unavailable" });
    expect(await room.instances.get(id, ada)).toMatchObject({ status: "Failed", reasonCode: "store.unavailable" });
  });

  it("a server that is stopped destroys its sandboxes, and the next one corrects their rows", async () => {
    const { world, room, ref } = await open();
    const row = await room.create(ref);
    world.gate("setup");
    const { id } = await room.instances.create(
      { envName: ref, environment_variables: { GATE: "setup" } },
      { caller: ada, signal: room.signal },
    );
    world.cut(true);
    await room.maintenance.close(10);
    expect(room.failures).not.toEqual([]);
    expect(await world.engine.list()).toEqual([]);
    world.cut(false);
    const next = openRoom(world);
    expect(await next.maintenance.open()).toMatchObject({ adopted: 0, failed: 2 });
    for (const one of [row.id, id]) expect(await next.instances.get(one, ada)).toMatchObject({ status: "Failed" });
  });

  it("a server that is stopped destroys only its own sandboxes, not those of another server at the same location", async () => {
    const { world, room, ref } = await open();
    const other = openRoom(world, { isAlone: false });
    await room.create(ref);
    const kept = await other.create(ref);
    world.cut(true);
    await room.maintenance.close(10);
    expect((await world.engine.list()).map(({ id }) => id)).toEqual([kept.slot?.sandboxId]);
    world.cut(false);
    expect(await other.count(kept)).toBe(1);
  });

  it("maintenance continues", async () => {
    const { world, room, ref } = await open();
    const row = await room.create(ref);
    world.cut(true);
    await room.maintenance.tidy();
    expect(room.failures.length).toBeGreaterThan(0);
    world.cut(false);
    const before = room.failures.length;
    await room.maintenance.tidy();
    expect(room.failures).toHaveLength(before);
    expect(await room.count(row)).toBe(1);
  });
});
