import { readdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../stores/memory/store.ts";
import { BlobStore } from "../archives/blobs.ts";
import { bundleOf, chunked, packed, tarOf } from "../fixtures/archives.ts";
import { openTestHub } from "../fixtures/hub.ts";
import { Bundles } from "./bundles.ts";

async function setUp() {
  const { blobs, bundles, tree } = openTestHub();
  const { digest, bytes } = bundleOf({ "main.js": "run()", "data/x": "1" });
  await blobs.put(chunked(bytes), { owner: "ada", digest });
  return { blobs, bundles, tree, digest, root: join(tree.path, "bundles") };
}

describe("an unpacked bundle", () => {
  it("is unpacked once, completely, for concurrent requests", async () => {
    const { tree, digest, root } = await setUp();
    let opened = 0;
    class Counted extends BlobStore {
      override open(wanted: string) {
        opened += 1;
        return super.open(wanted);
      }
    }
    const blobs = new Counted({ home: tree.path, store: new MemoryStore(), quotaOf: () => 0 });
    const bundles = new Bundles({ home: tree.path, blobs });
    const folders = await Promise.all(Array.from({ length: 20 }, () => bundles.folder(digest)));
    expect(new Set(folders).size).toBe(1);
    expect(opened).toBe(1);
    expect(readdirSync(root)).toEqual([digest.slice(7)]);
    expect(readFileSync(join(folders[0] as string, "data/x"), "utf8")).toBe("1");
    expect((await bundles.open(digest)).manifest.main).toBe("main.js");
  });

  it("is shared by processes that share the disk", async () => {
    const { blobs, tree, digest, root } = await setUp();
    const replicas = Array.from({ length: 5 }, () => new Bundles({ home: tree.path, blobs }));
    expect(new Set(await Promise.all(replicas.map((one) => one.folder(digest)))).size).toBe(1);
    expect(readdirSync(root)).toEqual([digest.slice(7)]);
  });

  it("is unpacked again if its folder was deleted", async () => {
    const { bundles, digest } = await setUp();
    const folder = await bundles.folder(digest);
    await bundles.collect([digest]);
    expect(await bundles.folder(digest)).toBe(folder);
    expect(readFileSync(join(folder, "main.js"), "utf8")).toBe("run()");
  });

  it("leaves nothing behind if it is refused, and all concurrent requests fail", async () => {
    const { blobs, bundles, root } = await setUp();
    const evil = packed(tarOf([{ path: "main.js" }, { path: "../evil", bytes: "x" }]));
    await blobs.put(chunked(evil.bytes), { owner: "ada" });
    const settled = await Promise.allSettled(Array.from({ length: 5 }, () => bundles.folder(evil.digest)));
    for (const one of settled) expect(one).toMatchObject({ status: "rejected", reason: { code: "bundle.invalid" } });
    expect(readdirSync(root)).toEqual([]);
  });

  it("is refused for a digest that is a path or unknown", async () => {
    const { bundles } = await setUp();
    for (const digest of ["../../etc", "sha256:..", ""]) await expect(bundles.folder(digest)).rejects.toThrow("not a digest");
    await expect(bundles.folder(`sha256:${"0".repeat(64)}`)).rejects.toMatchObject({ code: "bundle.not_found" });
  });

  it("is deleted if a dead process left it half unpacked, but not while it is being unpacked", async () => {
    const { bundles, tree, root } = await setUp();
    tree.write({ "bundles/unpacking-old/x": "1", "bundles/unpacking-new/x": "1" });
    utimesSync(join(root, "unpacking-old"), 0, 0);
    await bundles.collect([]);
    expect(readdirSync(root)).toEqual(["unpacking-new"]);
  });

  it("may come from another owner's upload of the same content", async () => {
    const { tree, digest } = await setUp();
    const blobs = new BlobStore({ home: tree.path, store: new MemoryStore(), quotaOf: () => 0 });
    expect(await new Bundles({ home: tree.path, blobs }).folder(digest)).toContain(digest.slice(7));
  });
});
