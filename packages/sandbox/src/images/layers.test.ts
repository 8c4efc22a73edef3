import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LayerStore } from "./layers.ts";

const ids = ["a", "b", "c"].map((letter) => `sha256:${letter.repeat(64)}`);
const [a = "", b = ""] = ids;
const later = () => new Date(Date.now() + 60_000);
const add = (store: LayerStore, id: string) => store.add(id, (files) => writeFile(join(files, "id"), id));
const contentOf = (store: LayerStore, id: string) => readFileSync(join(store.folder, store.filesOf(id), "id"), "utf8");

describe("a store of layers", () => {
  it("fills a layer once", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    await add(store, a);
    await store.add(a, () => Promise.reject(new Error("must not be filled again")));
    expect(contentOf(store, a)).toBe(a);
    expect(store.has(b)).toBe(false);
  });

  it("fills a layer once for callers at the same time, and again if that fails", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    let fills = 0;
    const fill = async (files: string) => {
      fills += 1;
      if (fills === 1) throw new Error("disk full");
      await writeFile(join(files, "id"), a);
    };
    const results = await Promise.allSettled([store.add(a, fill), store.add(a, fill), store.add(a, fill), add(store, b)]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled", "fulfilled"]);
    expect([fills, contentOf(store, a), contentOf(store, b)]).toEqual([2, a, b]);
  });

  it("leaves nothing of a layer that could not be filled", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    await expect(store.add(a, () => Promise.reject(new Error("disk full")))).rejects.toThrow("disk full");
    expect(readdirSync(store.folder)).toEqual([]);
  });

  it("takes a folder as a layer", async () => {
    using home = temporaryTree({ "changes/file": "x" });
    const store = new LayerStore(home.path);
    await add(store, a);
    const [below, id = ""] = await store.adopt(join(home.path, "changes"), "one", [a]);
    expect(below).toBe(a);
    expect(readFileSync(join(store.folder, store.filesOf(id), "file"), "utf8")).toBe("x");
    expect(existsSync(join(home.path, "changes"))).toBe(false);
  });

  it("deletes a layer of a snapshot with its last use, and never a layer of an image", async () => {
    using home = temporaryTree({ "changes/file": "x" });
    const stores = [new LayerStore(home.path), new LayerStore(home.path)] as const;
    await add(stores[0], a);
    const ids = await stores[0].adopt(join(home.path, "changes"), "one", [a]);
    const own = ids[1] ?? "";
    await stores[1].use("two", ids);
    await stores[0].release("one");
    // The sweep for what crashed processes left does not take it either.
    await stores[0].collect(later());
    expect(stores[0].has(own)).toBe(true);
    await stores[1].release("two");
    expect(readdirSync(stores[0].folder)).toEqual(["a".repeat(32)]);
    await expect(stores[1].use("three", ids)).rejects.toMatchObject({
      code: "snapshot.not_found",
      message: expect.stringContaining("its snapshot was removed"),
    });
    expect(await stores[0].holders()).toEqual([]);
  });

  it("sweeps a layer of a snapshot whose last user was killed while it released it, however young it is", async () => {
    using home = temporaryTree({ "changes/file": "x" });
    const store = new LayerStore(home.path);
    const ids = await store.adopt(join(home.path, "changes"), "one", []);
    rmSync(join(home.path, "uses", "one"));
    expect((await store.collect(new Date(0))).layers).toEqual(ids);
    expect(readdirSync(store.folder)).toEqual([]);
  });

  it("keeps layers of snapshots that are passed on from one user to the next while others release and collect", async () => {
    using home = temporaryTree();
    const stores = [0, 1, 2].map(() => new LayerStore(home.path));
    const [first, ...others] = stores as [LayerStore, ...LayerStore[]];
    const pass = async (number: number) => {
      const part = await first.temporaryFolder();
      mkdirSync(join(part, "files"));
      writeFileSync(join(part, "files/id"), String(number));
      const ids = await first.adopt(join(part, "files"), `user-${number}-0`, []);
      for (let next = 1; next < 20; next++) {
        const store = stores[next % stores.length] as LayerStore;
        // Throws if the layer is gone at this moment.
        await store.use(`user-${number}-${next}`, ids);
        await store.release(`user-${number}-${next - 1}`);
        expect(readFileSync(join(store.folder, store.filesOf(ids[0] ?? ""), "id"), "utf8")).toBe(String(number));
      }
      await first.release(`user-${number}-19`);
      rmSync(part, { recursive: true });
    };
    let isPassing = true;
    const collecting = others.map(async (store) => {
      while (isPassing) await store.collect(later());
    });
    await Promise.all([0, 1, 2, 3].map(pass));
    isPassing = false;
    await Promise.all(collecting);
    expect(readdirSync(first.folder)).toEqual([]);
    expect(await first.holders()).toEqual([]);
  });

  it("collects layers that nobody uses and that were not used lately", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    for (const id of [a, b]) await add(store, id);
    await store.use("one", [a]);
    expect((await store.collect(new Date(0))).layers).toEqual([]);
    expect((await store.collect(later())).layers).toEqual([b]);
    expect(await store.holders()).toEqual(["one"]);
    await store.release("one");
    expect((await store.collect(later())).layers).toEqual([a]);
    await expect(store.use("two", [a])).rejects.toThrow("pull its image again");
    expect(await store.holders()).toEqual([]);
  });

  it("removes what a process that has ended left unfinished, and moves back a used layer that it had taken away", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    for (const id of [a, b]) await add(store, id);
    await store.use("one", [a]);
    mkdirSync(join(store.folder, ".part-999999999_1.boot_ab"));
    for (const letter of ["a", "b"])
      renameSync(join(store.folder, letter.repeat(32)), join(store.folder, `.evicted-${letter.repeat(32)}-999999999_1.boot_ab`));
    expect(await store.collect(new Date(0))).toEqual({ layers: [], unfinished: 3 });
    expect(readdirSync(store.folder)).toEqual(["a".repeat(32)]);
  });

  it("gives a used layer back to its user while another process decides to delete it", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    await add(store, a);
    renameSync(join(store.folder, "a".repeat(32)), join(store.folder, `.evicted-${"a".repeat(32)}-${process.pid}_x_ab`));
    await store.use("one", [a]);
    expect(contentOf(store, a)).toBe(a);
  });

  it("refuses a folder that holds another layer, and ids that are paths", async () => {
    using home = temporaryTree();
    const store = new LayerStore(home.path);
    await add(store, a);
    writeFileSync(join(store.folder, "a".repeat(32), "layer.json"), JSON.stringify({ id: b }));
    expect(() => store.has(a)).toThrow("contains layer");
    expect(() => store.has("sha256:../../etc")).toThrow("not an id of a layer");
    await expect(store.use("../x", [])).rejects.toThrow("not an id of a sandbox");
  });

  it("keeps every layer in use complete while several stores add, use, release and collect at once", async () => {
    const step = fc.record({
      store: fc.nat(2),
      holder: fc.constantFrom("one", "two", "three"),
      layer: fc.nat(2),
      act: fc.constantFrom("start", "stop", "collect"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        using home = temporaryTree();
        const stores = [0, 1, 2].map(() => new LayerStore(home.path));
        const held = new Map<string, string>();
        const collections: Promise<unknown>[] = [];
        for (const { store: index, holder, layer, act } of steps) {
          const store = stores[index] as LayerStore;
          const id = ids[layer] as string;
          // Collections overlap with all that follows.
          if (act === "collect") collections.push(store.collect(later()));
          if (act === "stop") {
            await store.release(holder);
            held.delete(holder);
          }
          if (act !== "start") continue;
          held.delete(holder);
          for (let isHeld = false; !isHeld; held.set(holder, id)) {
            await add(store, id);
            isHeld = await store.use(holder, [id]).then(
              () => true,
              () => false,
            );
          }
        }
        await Promise.all(collections);
        for (const id of held.values()) expect(contentOf(stores[0] as LayerStore, id)).toBe(id);
        expect(readdirSync((stores[0] as LayerStore).folder).filter((name) => name.startsWith("."))).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });
});
