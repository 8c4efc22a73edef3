import { readdirSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { identityOf, openProcessTable } from "../../host/process-table.ts";
import { LayerStore } from "../../images/layers.ts";
import { SnapshotStore } from "./store.ts";

const processes = openProcessTable();
const self = identityOf(processes, process.pid) ?? { pid: process.pid, start: "" };

function open(path: string, home: string, maker = self, maxBytes = 1_000) {
  const layers = new LayerStore(join(path, "store"));
  return { layers, store: new SnapshotStore({ folder: join(path, home), layers, maxBytes, self: maker, processes }) };
}

async function take({ layers, store }: ReturnType<typeof open>, bytes: number, expected = 0, below: readonly string[] = []) {
  return store.add({ fidelity: "files", runtime: "runc", memory: null }, async ({ holder, expect }) => {
    expect(expected);
    const part = await layers.temporaryFolder();
    await mkdir(join(part, "files"));
    await writeFile(join(part, "files", "one"), "one");
    const files = { layers: await layers.adopt(join(part, "files"), holder, below), config: null };
    await rm(part, { recursive: true });
    return { files, bytes, layerBytes: { [files.layers.at(-1) ?? ""]: bytes } };
  });
}

describe("a store of snapshots", () => {
  it("keeps the layers of its snapshots until they are removed, also while another home with the same layers cleans up", async () => {
    using tree = temporaryTree();
    const [one, other] = [open(tree.path, "one"), open(tree.path, "other")];
    const { id, files } = await take(one, 10);
    await other.store.collect();
    await one.store.collect();
    await one.layers.collect(new Date(Date.now() + 60_000));
    expect(one.layers.has(files.layers[0] ?? "")).toBe(true);
    expect(one.store.get(id)).toMatchObject({ bytes: 10 });
    expect(() => other.store.get(id)).toThrow(`there is no snapshot '${id}'`);
    await one.store.remove(id);
    expect(readdirSync(one.layers.folder)).toEqual([]);
    expect(one.store.list()).toEqual([]);
  });

  it("keeps the layers of a removed snapshot that another one is based on, and deletes them with that one", async () => {
    using tree = temporaryTree();
    const one = open(tree.path, "one");
    const first = await take(one, 10);
    const second = await take(one, 10, 0, first.files.layers);
    await one.store.remove(first.id);
    expect(second.files.layers.map((layer) => one.layers.has(layer))).toEqual([true, true]);
    await one.store.remove(second.id);
    expect(readdirSync(one.layers.folder)).toEqual([]);
  });

  it("refuses what is too large, and counts only what is there", async () => {
    using tree = temporaryTree();
    const one = open(tree.path, "one");
    const { id } = await take(one, 900);
    await expect(take(one, 101)).rejects.toMatchObject({ code: "quota.exceeded" });
    expect(one.store.list()).toHaveLength(1);
    expect(readdirSync(one.layers.folder)).toHaveLength(1);
    await one.store.remove(id);
    await take(one, 1_000);
  });

  // Before: only the highest layer of each snapshot counted, so a chain of any length took the space of its last link.
  it("counts the layers of removed snapshots as long as another snapshot keeps them, each once", async () => {
    using tree = temporaryTree();
    const one = open(tree.path, "one");
    const first = await take(one, 400);
    const second = await take(one, 400, 0, first.files.layers);
    await one.store.remove(first.id);
    await expect(take(one, 400, 0, second.files.layers)).rejects.toMatchObject({
      code: "quota.exceeded",
      message: expect.stringContaining("raise the server's setting snapshotSpaceMb"),
    });
    await expect(take(one, 400)).rejects.toMatchObject({ code: "quota.exceeded" });
    const third = await take(one, 200, 0, second.files.layers);
    await one.store.remove(second.id);
    await expect(take(one, 1)).rejects.toMatchObject({ code: "quota.exceeded" });
    await one.store.remove(third.id);
    await take(one, 1_000);
  });

  it("measures a layer that only a sandbox has kept, and counts memory beside it", async () => {
    using tree = temporaryTree();
    const one = open(tree.path, "one", self, 20_000);
    const first = await take(one, 100);
    await one.layers.use("sandbox", first.files.layers);
    await one.store.remove(first.id);
    const memory = { program: null, diskMb: null, initPath: "/init", cut: [] };
    const about = { fidelity: "memory", runtime: "runsc", memory } as const;
    const { layerBytes, bytes } = await one.store.add(about, async () => ({ files: first.files, bytes: 5_000 }));
    const [size = 0] = Object.values(layerBytes ?? {});
    expect([bytes, size > 4_000]).toEqual([5_000, true]);
    await expect(take(one, 15_001 - size)).rejects.toMatchObject({ code: "quota.exceeded" });
    await take(one, 15_000 - size);
  });

  it("refuses before anything is copied what is expected to be too large, also because of others that are being stored", async () => {
    using tree = temporaryTree();
    const one = open(tree.path, "one");
    const about = { fidelity: "files", runtime: "runc", memory: null } as const;
    const refused = one.store.add(about, async (large) => {
      large.expect(600);
      await expect(take(one, 1, 500)).rejects.toThrow("and the others on this server 1 MB of 1 MB");
      expect(readdirSync(one.layers.folder)).toEqual([]);
      large.expect(1_001);
      throw new Error("must not be copied");
    });
    await expect(refused).rejects.toMatchObject({ code: "quota.exceeded" });
    await take(one, 1, 500);
  });

  it("removes the snapshots of processes that have ended", async () => {
    using tree = temporaryTree();
    const { id } = await take(open(tree.path, "one", { pid: process.pid, start: "before" }), 10);
    const next = open(tree.path, "one");
    expect(next.store.get(id).id).toBe(id);
    await next.store.collect();
    expect(() => next.store.get(id)).toThrow("may have been removed");
    expect(readdirSync(next.layers.folder)).toEqual([]);
    expect(() => next.store.get("../one")).toThrow("there is no snapshot");
  });
});
