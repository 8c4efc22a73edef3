import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { SnapshotContent } from "./content.ts";

const { signal } = new AbortController();

function open(path: string, serverId = "r-1") {
  const listed = new Set<string>();
  /** Called between two steps of a removal. */
  const hooks = { onRead: async (_: number) => {} };
  let reads = 0;
  const content = new SnapshotContent({
    folder: path,
    serverId,
    referenced: async () => {
      await hooks.onRead(++reads);
      return new Set(listed);
    },
  });
  const put = async (bytes: Buffer) => {
    const arrival = await content.receive(Readable.from([bytes]), () => {}, signal);
    listed.add(arrival.digest);
    await content.keep(arrival);
    return arrival;
  };
  return { content, listed, hooks, put };
}

const filesIn = (path: string) => readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

describe("the content of snapshots", () => {
  it("is stored once, compressed, and read as it was", async () => {
    using tree = temporaryTree();
    const { content, put } = open(tree.path);
    const bytes = Buffer.concat([randomBytes(100_000), Buffer.alloc(5_000_000)]);
    const [one, two] = [await put(bytes), await put(bytes)];
    expect(one.digest).toBe(two.digest);
    expect(one.bytes).toBeLessThan(200_000);
    expect(filesIn(tree.path)).toHaveLength(1);
    expect((await buffer(await content.open(one.digest))).equals(bytes)).toBe(true);
  });

  it("that fails or is too large leaves nothing", async () => {
    using tree = temporaryTree();
    const { content } = open(tree.path);
    const broken = Readable.from(
      (async function* () {
        yield randomBytes(1_000);
        throw new Error("the source is broken");
      })(),
    );
    await expect(content.receive(broken, () => {}, signal)).rejects.toThrow("the source is broken");
    const full = () => {
      throw new Error("no more");
    };
    await expect(content.receive(Readable.from([randomBytes(1_000)]), full, signal)).rejects.toThrow("no more");
    expect(filesIn(tree.path)).toEqual([]);
  });

  it("is kept if a row lists it while it is being removed", async () => {
    using tree = temporaryTree();
    const { content, listed, hooks, put } = open(tree.path);
    const { digest } = await put(Buffer.from("one"));
    listed.delete(digest);
    // The first read finds nothing; before the second, another server lists the content and sees that it is gone.
    hooks.onRead = async (read) => {
      if (read === 2) listed.add(digest);
    };
    await content.remove([digest]);
    expect(await buffer(await content.open(digest))).toEqual(Buffer.from("one"));
    hooks.onRead = async () => {};
    listed.delete(digest);
    await content.remove([digest]);
    expect(filesIn(tree.path)).toEqual([]);
    await expect(content.open(digest)).rejects.toMatchObject({ code: "snapshot.not_found" });
  });

  it("that a killed server was about to remove is moved back if it is listed, and else removed", async () => {
    using tree = temporaryTree();
    const dead = open(tree.path, "r-dead");
    const [kept, gone] = [await dead.put(Buffer.from("kept")), await dead.put(Buffer.from("gone"))];
    dead.listed.clear();
    dead.hooks.onRead = async (read) => {
      if (read > 1) throw new Error("killed");
    };
    await expect(dead.content.remove([kept.digest])).rejects.toThrow("killed");
    dead.hooks.onRead = async (read) => {
      if (read > 3) throw new Error("killed");
    };
    await expect(dead.content.remove([gone.digest])).rejects.toThrow("killed");
    const { content, listed } = open(tree.path, "r-next");
    listed.add(kept.digest);
    await content.collect(async () => new Set(["r-dead"]));
    expect(await content.has(kept.digest)).toBe(false);
    await content.collect(async () => new Set(["r-next"]));
    expect([await content.has(kept.digest), await content.has(gone.digest)]).toEqual([true, false]);
    expect(filesIn(tree.path)).toHaveLength(1);
  });
});
