import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CreateInstanceRequest, SnapshotRequest } from "@aenv/contract";
import type { MemorySandbox } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import { ada, bob, openTestServer, openWorld, type TestServerOptions } from "../instances/fixtures/test-server.ts";
import type { InstanceRow } from "../instances/row.ts";
import { bytesOf, snapshotRows } from "./row.ts";

const admin = { ...bob, owner: "root", roles: new Set(["admin"] as const) };

async function open(options: TestServerOptions = {}, isolation = "instance") {
  const world = openWorld({ snapshots: ["files", "memory"] });
  const ref = await world.publish(ada, "shop", { isolation });
  return { world, ref, server: openTestServer(world, options) };
}

type World = Awaited<ReturnType<typeof open>>["world"];
type Server = ReturnType<typeof openTestServer>;

const take = (server: Server, { id }: InstanceRow, request: SnapshotRequest, caller = ada) =>
  server.instances.store(id, request, { caller, signal: server.signal });
const startFrom = (server: Server, snapshot: unknown, more: CreateInstanceRequest = {}) => server.create("shop", { snapshot, ...more });
const sandboxOf = async (server: Server, { slot }: InstanceRow) => (await server.slots.find(slot?.sandboxId ?? "")) as MemorySandbox;

/** The names of all files of stored content. */
function contentOf({ blobs }: World): string[] {
  try {
    return readdirSync(join(blobs, "snapshots"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

/** It compresses to two thirds. */
function incompressible(length: number): string {
  return Array.from({ length }, () => Math.random().toString(36)[2]).join("");
}

describe("a stored snapshot", () => {
  it("of the state starts instances by its name or id, in shared processes too", async () => {
    for (const isolation of ["instance", "shared"]) {
      const { server } = await open({}, isolation);
      const parent = await server.create("shop", { arguments: ["a"], seed: 7, environment_variables: { KEY: "secret" } });
      expect([await server.count(parent), await server.count(parent)]).toEqual([1, 2]);
      const stored = await take(server, parent, { name: "two" });
      expect(stored).toMatchObject({
        owner: "ada",
        name: "two",
        fidelity: "state",
        environment: { name: "shop", version: "1.0.0" },
        instance: parent.id,
      });
      expect(JSON.stringify(stored)).not.toContain("secret");
      expect(await server.count(parent)).toBe(3);
      for (const snapshot of ["two", stored.id, { name: "two" }, { id: stored.id }]) {
        const row = await startFrom(server, snapshot);
        expect(row).toMatchObject({ seed: 7, startedFrom: { id: stored.id, name: "two", fidelity: "state" } });
        expect(await server.count(row)).toBe(3);
      }
      const [fork] = await server.instances.fork((await startFrom(server, "two")).id, 1, { caller: ada, signal: server.signal });
      expect(fork?.startedFrom).toBeUndefined();
    }
  });

  it("still can be a value that the client keeps", async () => {
    const { server, ref } = await open();
    const parent = await server.create(ref);
    await server.count(parent);
    const state = await server.instances.snapshot(parent.id, { caller: ada, signal: server.signal });
    const row = await server.create(ref, { snapshot: state });
    expect(row.startedFrom).toBeUndefined();
    expect(await server.count(row)).toBe(2);
  });

  it.each(["files", "memory"] as const)("of %s starts instances, also on a server of another machine", async (fidelity) => {
    const { world, server } = await open();
    const parent = await server.create("shop");
    await server.count(parent);
    (await sandboxOf(server, parent)).files.set("/kept", "before");
    const { id } = await take(server, parent, { name: "one", fidelity });
    (await sandboxOf(server, parent)).files.set("/kept", "after");
    await server.count(parent);
    const elsewhere = openTestServer(world, { engine: world.newEngine(), isAlone: false, location: "there" });
    for (const one of [server, elsewhere]) {
      const rows = await Promise.all([startFrom(one, "one"), startFrom(one, "one")]);
      for (const row of rows) {
        expect(row).toMatchObject({ startedFrom: { id, fidelity } });
        expect((await sandboxOf(one, row)).files.get("/kept")).toBe("before");
        expect(await one.count(row)).toBe(2);
      }
    }
    // A snapshot of an instance from a snapshot.
    const [row] = [await startFrom(elsewhere, "one")];
    await elsewhere.count(row);
    await take(elsewhere, row, { name: "again", fidelity });
    expect(await server.count(await startFrom(server, "again"))).toBe(3);
  });

  it("is not found by others, but by an administrator", async () => {
    const { server } = await open();
    const parent = await server.create("shop");
    const { id } = await take(server, parent, { name: "mine" });
    for (const ref of [{ id }, { name: "mine" }]) {
      await expect(server.snapshots.get(ref, "bob", bob)).rejects.toMatchObject({ code: "snapshot.not_found" });
      await expect(server.create("shop", { snapshot: ref }, bob)).rejects.toMatchObject({ code: "snapshot.not_found" });
    }
    await expect(take(server, parent, { name: "theirs" }, bob)).rejects.toMatchObject({ code: "instance.not_found" });
    expect(await server.snapshots.page({ limit: 10 }, bob)).toEqual({ rows: [], next: null });
    expect(await server.snapshots.get({ id }, "root", admin)).toMatchObject({ id });
    expect((await server.snapshots.page({ limit: 10 }, admin)).rows).toHaveLength(1);
    expect(await server.snapshots.get({ name: "mine" }, "root", admin)).toMatchObject({ id });
    // The same name of another owner is another snapshot.
    await take(server, await server.create("shop", {}, bob), { name: "mine" }, bob);
    expect((await server.snapshots.get({ name: "mine" }, "bob", bob)).id).not.toBe(id);
    await expect(server.snapshots.get({ name: "mine" }, "root", admin)).rejects.toThrow("several owners have a snapshot 'mine'");
  });

  it("has a name that its owner uses once, or its id", async () => {
    const { server } = await open();
    const parent = await server.create("shop");
    const unnamed = await take(server, parent, { fidelity: "state" });
    expect(unnamed.name).toBe(unnamed.id);
    await take(server, parent, { name: "a" });
    await expect(take(server, parent, { name: "a" })).rejects.toMatchObject({
      code: "snapshot.exists",
      message: "'ada' has a snapshot 'a' already; delete it first, or choose another name",
    });
    for (const name of ["b", "c"]) await take(server, parent, { name });
    const first = await server.snapshots.page({ limit: 2 }, ada);
    expect(first.rows.map(({ name }) => name)).toEqual(["a", "b"]);
    const rest = await server.snapshots.page({ limit: 2, after: first.next ?? "" }, ada);
    expect(rest.rows.map(({ name }) => name)).toEqual(["c", unnamed.id]);
  });

  it("determines the environment, the task and the seed; memory also the variables", async () => {
    const { world, server } = await open();
    await world.publish(ada, "bank", { isolation: "instance" });
    const parent = await server.create("shop");
    await take(server, parent, { name: "state" });
    await take(server, parent, { name: "memory", fidelity: "memory" });
    expect(await server.create("", { snapshot: "state" })).toMatchObject({ environment: { name: "shop", version: "1.0.0" } });
    const refused = (more: CreateInstanceRequest, message: RegExp, snapshot = "state") =>
      expect(startFrom(server, snapshot, more)).rejects.toMatchObject({ code: "request.invalid", message: expect.stringMatching(message) });
    await refused({ envName: "bank" }, /it is of shop@1.0.0, not of bank/);
    await refused({ envName: "shop@2.0.0" }, /not of shop@2.0.0/);
    await refused({ task: "t" }, /leave 'task' out, or reset/);
    await refused({ seed: 1 }, /leave 'seed' out/);
    await refused({ arguments: ["x"] }, /leave 'arguments' out/);
    await refused({ environment_variables: { A: "1" } }, /leave A out/, "memory");
    await startFrom(server, "state", { environment_variables: { A: "1" } });
    await expect(startFrom(server, "none")).rejects.toMatchObject({ code: "snapshot.not_found", message: "snapshot 'none' not found" });
  });

  it("of a shared process has no files, and says so", async () => {
    const { server } = await open({}, "shared");
    const parent = await server.create("shop");
    await expect(take(server, parent, { fidelity: "files" })).rejects.toMatchObject({
      code: "instance.unsupported",
      message: expect.stringContaining("cannot be stored with its files: it shares its process"),
    });
    expect((await server.snapshots.page({ limit: 10 }, ada)).rows).toEqual([]);
  });

  it("counts against the quotas of its owner, in number and in bytes", async () => {
    const { world, server } = await open({ maxSnapshots: 2, snapshotBytes: 1_500 });
    const parent = await server.create("shop");
    const sandbox = await sandboxOf(server, parent);
    await take(server, parent, { name: "small" });
    // Content that does not compress.
    sandbox.files.set("/large", incompressible(3_000));
    await expect(take(server, parent, { name: "large", fidelity: "files" })).rejects.toMatchObject({
      code: "quota.exceeded",
      retryable: false,
      message: expect.stringMatching(
        /^'ada' has stored \d+ B in 1 snapshot and may store [\d.]+ \w+, so this one does not fit; delete snapshots/,
      ),
    });
    expect(contentOf(world)).toHaveLength(1);
    expect(world.engine.snapshotCount).toBe(0);
    await take(server, parent, { name: "second" });
    await expect(take(server, parent, { name: "third" })).rejects.toThrow(
      "'ada' has stored 2 snapshots and may store 2; delete snapshots that are not needed (aenv snapshot list), or ask the operator to raise maxSnapshots",
    );
    // The same state is stored once.
    expect(contentOf(world)).toHaveLength(1);
  });

  // Before: the layers of images counted for no owner, so an owner stored one image after the other with 0 bytes of the quota.
  it("counts with the layers of its image against the quota of its owner, once for all snapshots with that image", async () => {
    const world = openWorld({ snapshots: ["files"] }, undefined, { layer: incompressible(2_000) });
    await world.publish(ada, "shop", { isolation: "instance" });
    const small = openTestServer(world, { snapshotBytes: 1_200 });
    const parent = await small.create("shop");
    await expect(take(small, parent, { fidelity: "files" })).rejects.toMatchObject({ code: "quota.exceeded" });
    expect(contentOf(world)).toEqual([]);
    const server = openTestServer(world, { snapshotBytes: 2_500 });
    const first = await take(server, parent, { fidelity: "files" });
    expect(bytesOf([first])).toBeGreaterThan(1_200);
    for (let more = 0; more < 3; more++) await take(server, parent, { fidelity: "files" });
    expect(contentOf(world).length).toBeGreaterThanOrEqual(3);
  });

  it("can be deleted while instances run from it; its content goes with its last snapshot", async () => {
    const { world, server } = await open();
    const parent = await server.create("shop");
    const [one, two] = [
      await take(server, parent, { name: "one", fidelity: "files" }),
      await take(server, parent, { name: "two", fidelity: "files" }),
    ];
    const row = await startFrom(server, "one");
    expect(world.engine.snapshotCount).toBe(2);
    await server.snapshots.remove(one);
    await server.snapshots.remove(one);
    expect(await server.count(row)).toBe(1);
    expect(world.engine.snapshotCount).toBe(1);
    expect(await server.count(await startFrom(server, "two"))).toBe(1);
    await server.snapshots.remove(two);
    expect(contentOf(world)).toEqual([]);
    expect(world.engine.snapshotCount).toBe(0);
    await expect(startFrom(server, "two")).rejects.toMatchObject({ code: "snapshot.not_found" });
  });

  it("whose server died in between leaves nothing after the next sweep of another", async () => {
    const { world, server } = await open({ isAlone: false });
    await server.peers.heartbeat();
    const parent = await server.create("shop");
    const { id: _, ...kept } = await take(server, parent, { name: "kept" });
    const dead = { ...kept, id: "snap-dead", name: "dead", server: "r-dead", digest: null };
    const unlisted = { ...dead, parts: [] };
    await snapshotRows(world.store).insert("ada/dead", unlisted);
    const folder = join(world.blobs, "snapshots");
    mkdirSync(join(folder, "sha256/ff"), { recursive: true });
    writeFileSync(join(folder, "tmp/r-dead.part.1"), "half");
    writeFileSync(join(folder, `tmp/${server.serverId}.part.1`), "another snapshot of this server");
    writeFileSync(join(folder, "sha256/ff", "f".repeat(64)), "without a row");
    await server.snapshots.sweep();
    expect(contentOf(world).toSorted()).toEqual([kept.parts[0]?.digest.slice("sha256:".length), `${server.serverId}.part.1`].toSorted());
    expect((await server.snapshots.page({ limit: 10 }, ada)).rows.map(({ name }) => name)).toEqual(["kept"]);
    expect(await server.count(await startFrom(server, "kept"))).toBe(1);
  });

  it("that is not complete starts nothing yet", async () => {
    const { world, server } = await open();
    const { id: _, ...stored } = await take(server, await server.create("shop"), { name: "done" });
    await snapshotRows(world.store).insert("ada/new", { ...stored, id: "snap-new", name: "new", digest: null });
    await expect(startFrom(server, "new")).rejects.toMatchObject({
      retryable: true,
      message: expect.stringContaining("still being stored"),
    });
  });

  it("that is damaged on disk starts nothing, and says why", async () => {
    const { world, server } = await open();
    await take(server, await server.create("shop"), { name: "one" });
    const [name = ""] = contentOf(world);
    writeFileSync(join(world.blobs, "snapshots/sha256", name.slice(0, 2), name), "not compressed");
    await expect(startFrom(server, "one")).rejects.toMatchObject({
      code: "snapshot.invalid",
      message: expect.stringContaining("damaged on disk"),
    });
  });

  it("gives way in the engine to forks, warm starts and other snapshots, and is imported again", async () => {
    const world = openWorld({ snapshots: ["files", "memory"] }, undefined, { maxSnapshots: 1 });
    await world.publish(ada, "shop", { isolation: "instance" });
    await world.publish(ada, "warm", { isolation: "instance", warmStart: true });
    const server = openTestServer(world);
    const parent = await server.create("shop");
    await server.count(parent);
    await take(server, parent, { name: "one", fidelity: "files" });
    expect(world.engine.snapshotCount).toBe(1);
    for (const fidelity of ["files", "memory"] as const) {
      const forks = await server.instances.fork(parent.id, 2, { caller: ada, signal: server.signal }, fidelity);
      expect(forks).toHaveLength(2);
      // Imports it.
      expect(await server.count(await startFrom(server, "one"))).toBe(2);
      expect(world.engine.snapshotCount).toBe(1);
    }
    await take(server, parent, { name: "two", fidelity: "files" });
    await server.create("warm");
    await server.create("warm");
    expect(server.pool.copies).toBe(1);
    // What is in use does not give way.
    await expect(startFrom(server, "one")).rejects.toMatchObject({ code: "quota.exceeded" });
  });

  it("of memory has no connections to other machines, which the events of its instances name, and those of forks", async () => {
    const { server } = await open();
    const parent = await server.create("shop");
    const whatOf = ({ events }: InstanceRow) => events.map(({ what }) => what);
    const forkOf = async (fidelity: "files" | "memory") =>
      (await server.instances.fork(parent.id, 1, { caller: ada, signal: server.signal }, fidelity))[0] as InstanceRow;
    (await sandboxOf(server, parent)).connections = ["10.0.0.7:443", "10.0.0.8:80"];
    const lost = "This sandbox is a copy. Its connections to 10.0.0.7:443, 10.0.0.8:80 were cut: only the original has them.";
    expect(whatOf(await forkOf("memory"))).toContain(lost);
    expect(whatOf(await forkOf("files"))).not.toContain(lost);
    expect((await take(server, parent, { name: "one", fidelity: "memory" })).cut).toEqual(["10.0.0.7:443", "10.0.0.8:80"]);
    expect(whatOf(await startFrom(server, "one"))).toContain(lost);
    (await sandboxOf(server, parent)).connections = [];
    expect(whatOf(await forkOf("memory"))).toEqual([`forked from ${parent.id} with its memory`, "running"]);
  });

  it("is removed from the engine when it is not used for a while, and is imported again", async () => {
    const { world, server } = await open();
    await take(server, await server.create("shop"), { name: "one", fidelity: "memory" });
    world.later(20 * 60);
    await server.snapshots.sweep();
    expect(world.engine.snapshotCount).toBe(1);
    world.later(11 * 60);
    await server.snapshots.sweep();
    expect(world.engine.snapshotCount).toBe(0);
    expect(await server.count(await startFrom(server, "one"))).toBe(1);
    expect(world.engine.snapshotCount).toBe(1);
  });
});
