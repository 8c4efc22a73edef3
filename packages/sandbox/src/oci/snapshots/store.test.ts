import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { identityOf, openProcessTable } from "../../process/process-table.ts";
import { LayerStore } from "../images/layers.ts";
import { SnapshotStore } from "./store.ts";

const processes = openProcessTable();
const self = identityOf(processes, process.pid) ?? { pid: process.pid, start: "" };

function open(path: string, home: string, maker = self) {
  const layers = new LayerStore(join(path, "store"));
  return { layers, store: new SnapshotStore({ folder: join(path, home), layers, maxBytes: 1_000, self: maker, processes }) };
}

async function take({ layers, store }: ReturnType<typeof open>, bytes: number) {
  return store.add({ fidelity: "files", runtime: "runc", memory: null }, async () => {
    const part = await layers.temporaryFolder();
    await mkdir(join(part, "files"));
    await writeFile(join(part, "files", "one"), "one");
    return { files: { layers: [await layers.adopt(join(part, "files"))], config: null }, bytes };
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
    await one.store.remove(id);
    await one.layers.collect(new Date(Date.now() + 60_000));
    expect(one.layers.has(files.layers[0] ?? "")).toBe(false);
    expect(one.store.list()).toEqual([]);
  });

  it("refuses what is too large, and counts only what is there", async () => {
    using tree = temporaryTree();
    const one = open(tree.path, "one");
    const { id } = await take(one, 900);
    await expect(take(one, 101)).rejects.toMatchObject({ code: "quota.exceeded" });
    expect(one.store.list()).toHaveLength(1);
    await one.store.remove(id);
    await take(one, 1_000);
  });

  it("removes the snapshots of processes that have ended", async () => {
    using tree = temporaryTree();
    const { id } = await take(open(tree.path, "one", { pid: process.pid, start: "before" }), 10);
    const next = open(tree.path, "one");
    expect(next.store.get(id).id).toBe(id);
    await next.store.collect();
    expect(() => next.store.get(id)).toThrow("may have been removed");
    expect(() => next.store.get("../one")).toThrow("there is no snapshot");
  });
});
