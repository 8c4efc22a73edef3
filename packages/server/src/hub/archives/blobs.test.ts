import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { MemoryRows, MemoryStore } from "../../stores/memory/store.ts";
import { bundleOf, chunked, packed } from "../fixtures/archives.ts";
import { BlobStore, type BlobStoreOptions } from "./blobs.ts";

const HOUR = 3_600_000;

function setUp(options: Partial<BlobStoreOptions> = {}) {
  const tree = temporaryTree();
  onTestFinished(() => tree[Symbol.dispose]());
  const clock = { now: new Date() };
  const blobs = new BlobStore({ home: tree.path, store: new MemoryStore(), quotaOf: () => 10 * 2 ** 20, now: () => clock.now, ...options });
  return { tree, blobs, clock };
}

/** Every file of the store. */
function filesIn({ path }: Tree): string[] {
  if (!existsSync(join(path, "blobs"))) return [];
  return readdirSync(join(path, "blobs"), { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? entry.name : []));
}

/** Hard to compress, so that the compressed size is about the same. */
const noise = (bytes: number) => packed(randomBytes(bytes));

async function read(blobs: BlobStore, digest: string): Promise<Buffer> {
  const { stream } = await blobs.open(digest);
  return Buffer.concat(await stream.toArray());
}

describe("the blob store", () => {
  it("stores an archive under the digest of its content, and returns it byte for byte", async () => {
    const { blobs } = setUp();
    const { digest, bytes } = bundleOf({ "main.js": "x" });
    const blob = await blobs.put(chunked(bytes, 10), { owner: "ada", digest });
    expect(blob).toMatchObject({ digest, size: bytes.length });
    expect(await blobs.find(digest)).toEqual(blob);
    expect(await read(blobs, digest)).toEqual(bytes);
  });

  it("computes the digest of an upload that was not announced", async () => {
    const { blobs } = setUp();
    const { digest, bytes } = noise(1_000);
    expect((await blobs.put(Readable.from(chunked(bytes)), { owner: "ada" })).digest).toBe(digest);
  });

  it("keeps one copy of the same content, for any compression and owner", async () => {
    const { blobs, tree } = setUp();
    const tar = randomBytes(50_000);
    const [one, two] = [gzipSync(tar, { level: 1 }), gzipSync(tar, { level: 0 })];
    const first = await blobs.put(chunked(one), { owner: "ada" });
    expect(await blobs.put(chunked(two), { owner: "bob" })).toEqual(first);
    expect(filesIn(tree)).toHaveLength(2);
    expect(await blobs.ownership.has("ada", first.digest)).toBe(true);
    expect(await blobs.ownership.has("bob", first.digest)).toBe(true);
  });

  it("keeps one copy of ten concurrent uploads", async () => {
    const { blobs, tree } = setUp();
    const { digest, bytes } = noise(20_000);
    const all = await Promise.all(Array.from({ length: 10 }, (_, at) => blobs.put(chunked(bytes), { owner: `o${at % 3}`, digest })));
    expect(new Set(all.map((blob) => blob.digest))).toEqual(new Set([digest]));
    expect(filesIn(tree)).toHaveLength(2);
    expect(await read(blobs, digest)).toEqual(bytes);
  });

  it("does not read what the owner has uploaded before", async () => {
    const { blobs } = setUp();
    const { digest, bytes } = noise(1_000);
    await blobs.put(chunked(bytes), { owner: "ada", digest });
    const unread = Readable.from(chunked(bytes));
    expect((await blobs.put(unread, { owner: "ada", digest })).digest).toBe(digest);
    expect(unread.readableDidRead).toBe(false);
  });

  it("refuses an upload with another digest than announced, and keeps nothing", async () => {
    const { blobs, tree } = setUp();
    const { bytes } = noise(1_000);
    const other = noise(1_000).digest;
    await expect(blobs.put(chunked(bytes), { owner: "ada", digest: other })).rejects.toThrow(`not ${other} as announced`);
    await expect(blobs.put(chunked(Buffer.from("no gzip")), { owner: "ada" })).rejects.toMatchObject({ code: "bundle.invalid" });
    await expect(blobs.put(chunked(bytes.subarray(0, 500)), { owner: "ada" })).rejects.toMatchObject({ code: "bundle.invalid" });
    await expect(blobs.put(chunked(new Uint8Array()), { owner: "ada" })).rejects.toMatchObject({ code: "bundle.invalid" });
    await expect(blobs.put(chunked(gzipSync("")), { owner: "ada" })).rejects.toThrow("empty");
    expect(filesIn(tree)).toEqual([]);
    expect(await blobs.ownership.usedBy("ada")).toBe(0);
  });

  it("keeps nothing of an upload that fails or is cancelled", async () => {
    const { blobs, tree } = setUp();
    const { bytes } = noise(10_000);
    const broken = async function* () {
      yield bytes.subarray(0, 5_000);
      throw new Error("connection reset");
    };
    await expect(blobs.put(broken(), { owner: "ada" })).rejects.toThrow("connection reset");
    const abort = new AbortController();
    const silent = async function* () {
      yield bytes.subarray(0, 5_000);
      abort.abort();
      await new Promise(() => {});
    };
    await expect(blobs.put(silent(), { owner: "ada", signal: abort.signal })).rejects.toMatchObject({ code: "request.cancelled" });
    expect(filesIn(tree)).toEqual([]);
  });

  it("refuses a digest that is a path", async () => {
    const { blobs } = setUp();
    for (const digest of ["../../etc/passwd", `sha256:${"../".repeat(21)}a`, "sha256:", ""]) {
      await expect(blobs.find(digest)).rejects.toThrow("not a digest");
      await expect(blobs.open(digest)).rejects.toThrow("not a digest");
    }
  });

  it("names the missing bundle and the next step", async () => {
    const { digest } = noise(1);
    await expect(setUp().blobs.open(digest)).rejects.toThrow(`no bundle ${digest} is stored; upload it first`);
  });
});

describe("limits", () => {
  it("stop an upload that is too large while it streams", async () => {
    const { blobs, tree } = setUp({ maxBytes: 5_000 });
    let sent = 0;
    const endless = async function* () {
      for (;;) {
        sent += 1_000;
        yield sent === 1_000 ? noise(1_000).bytes.subarray(0, 1_000) : randomBytes(1_000);
      }
    };
    await expect(blobs.put(endless(), { owner: "ada" })).rejects.toMatchObject({
      code: expect.stringMatching(/request.too_large|bundle.invalid/),
    });
    expect(sent).toBeLessThan(200_000);
    await expect(blobs.put(chunked(noise(8_000).bytes), { owner: "ada" })).rejects.toMatchObject({ code: "request.too_large" });
    expect(filesIn(tree)).toEqual([]);
  });

  it("stop a decompression bomb while it streams", async () => {
    const limits = { maxUnpackedBytes: 2 ** 30, maxRatio: 200, freeBytes: 2 ** 20 };
    const { blobs, tree } = setUp({ limits });
    await expect(blobs.put(chunked(gzipSync(new Uint8Array(64 * 2 ** 20))), { owner: "ada" })).rejects.toThrow("200 times its size");
    expect(filesIn(tree)).toEqual([]);
  });

  it("refuse what would exceed the owner's quota, while it streams, and keep nothing", async () => {
    const { blobs, tree } = setUp({ quotaOf: (owner) => (owner === "ada" ? 25_000 : 2 ** 20) });
    const one = noise(10_000);
    await blobs.put(chunked(one.bytes), { owner: "ada" });
    const two = noise(20_000);
    await expect(blobs.put(chunked(two.bytes), { owner: "ada" })).rejects.toMatchObject({
      code: "quota.exceeded",
      retryable: false,
      details: { quotaBytes: 25_000 },
    });
    expect(filesIn(tree)).toHaveLength(2);
    await blobs.put(chunked(two.bytes), { owner: "bob" });
    expect(await blobs.ownership.usedBy("ada")).toBe(one.bytes.length);
  });

  it("hold for concurrent uploads", async () => {
    const { blobs } = setUp({ quotaOf: () => 35_000 });
    const uploads = Array.from({ length: 12 }, () => noise(10_000));
    const settled = await Promise.allSettled(uploads.map(({ bytes }) => blobs.put(chunked(bytes), { owner: "ada" })));
    expect(settled.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    expect(await blobs.ownership.usedBy("ada")).toBeLessThanOrEqual(35_000);
    for (const one of settled) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "quota.exceeded" });
  });

  it("hold across servers that share a store and a disk", async () => {
    const rows = new MemoryRows();
    const { tree } = setUp();
    const replicas = [1, 2, 3, 4].map(() => new BlobStore({ home: tree.path, store: new MemoryStore(rows), quotaOf: () => 25_000 }));
    const settled = await Promise.allSettled(replicas.map((blobs) => blobs.put(chunked(noise(10_000).bytes), { owner: "ada" })));
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(await replicas[0]?.ownership.usedBy("ada")).toBeLessThanOrEqual(25_000);
    expect(filesIn(tree)).toHaveLength(4);
  });

  it("are freed when an owner releases a blob", async () => {
    const { blobs } = setUp({ quotaOf: () => 15_000 });
    const { digest, bytes } = noise(10_000);
    await blobs.put(chunked(bytes), { owner: "ada" });
    await blobs.ownership.release("ada", digest);
    await blobs.put(chunked(noise(10_000).bytes), { owner: "ada" });
  });
});

describe("a damaged blob", () => {
  it("fails the download before its end, and is replaced by the next upload of the same content", async () => {
    const { blobs, tree } = setUp();
    const { digest, bytes } = noise(700_000);
    await blobs.put(chunked(bytes, 50_000), { owner: "ada", digest });
    const name = filesIn(tree).find((file) => file.endsWith(".tar.gz")) as string;
    const path = join(tree.path, "blobs/sha256", name.slice(0, 2), name);
    const damaged = readFileSync(path);
    damaged[350_000] = (damaged[350_000] as number) ^ 1;
    writeFileSync(path, damaged);

    const { stream } = await blobs.open(digest);
    let received = 0;
    const reading = (async () => {
      for await (const chunk of stream) received += (chunk as Buffer).length;
    })();
    await expect(reading).rejects.toMatchObject({ code: "bundle.damaged" });
    expect(received).toBeLessThan(bytes.length);

    await expect(blobs.open(digest)).rejects.toMatchObject({ code: "bundle.not_found" });
    await blobs.put(chunked(bytes, 50_000), { owner: "ada", digest });
    expect(await read(blobs, digest)).toEqual(bytes);
  });

  it("is replaced if its record is unreadable", async () => {
    const { blobs, tree } = setUp();
    const { digest, bytes } = noise(1_000);
    await blobs.put(chunked(bytes), { owner: "ada" });
    const hex = digest.slice(7);
    writeFileSync(join(tree.path, "blobs/sha256", hex.slice(0, 2), `${hex}.json`), "{");
    await expect(blobs.open(digest)).rejects.toMatchObject({ code: "bundle.not_found" });
    await blobs.put(chunked(bytes), { owner: "ada", digest });
    expect(await read(blobs, digest)).toEqual(bytes);
  });

  it("is detected if its file was truncated", async () => {
    const { blobs, tree } = setUp();
    const { digest, bytes } = noise(1_000);
    await blobs.put(chunked(bytes), { owner: "ada" });
    const name = filesIn(tree).find((file) => file.endsWith(".tar.gz")) as string;
    writeFileSync(join(tree.path, "blobs/sha256", name.slice(0, 2), name), "");
    await expect(read(blobs, digest)).rejects.toMatchObject({ code: "bundle.damaged" });
  });
});

describe("collecting", () => {
  it("deletes old unreferenced blobs, which then no longer count against a quota", async () => {
    const { blobs, clock, tree } = setUp();
    const [kept, lost] = [noise(1_000), noise(1_000)];
    for (const { bytes } of [kept, lost]) await blobs.put(chunked(bytes), { owner: "ada" });
    expect(await blobs.collect(new Set([kept.digest]))).toEqual(new Set());
    clock.now = new Date(clock.now.getTime() + 2 * HOUR);
    expect(await blobs.collect(new Set([kept.digest]))).toEqual(new Set([lost.digest]));
    expect(await blobs.find(lost.digest)).toBeNull();
    expect(await read(blobs, kept.digest)).toEqual(kept.bytes);
    expect(await blobs.ownership.usedBy("ada")).toBe(kept.bytes.length);
    expect(filesIn(tree)).toHaveLength(2);
  });

  it("keeps what was just uploaded again or marked as used", async () => {
    const { blobs, clock } = setUp();
    const [again, used] = [noise(1_000), noise(1_000)];
    for (const { bytes } of [again, used]) await blobs.put(chunked(bytes), { owner: "ada" });
    clock.now = new Date(clock.now.getTime() + 2 * HOUR);
    await blobs.put(chunked(again.bytes), { owner: "ada", digest: again.digest });
    expect(await blobs.keep(used.digest)).toBe(true);
    expect(await blobs.collect(new Set())).toEqual(new Set());
    expect(await blobs.keep(noise(1).digest)).toBe(false);
  });

  it("deletes the rest of crashed uploads, but no unknown files", async () => {
    const { blobs, clock, tree } = setUp();
    const { digest, bytes } = noise(1_000);
    await blobs.put(chunked(bytes), { owner: "ada" });
    const hex = digest.slice(7);
    const orphans = [
      `tmp/left-over`,
      `sha256/${hex.slice(0, 2)}/${hex}.other.tar.gz`,
      `sha256/ff/${"f".repeat(64)}.x.tar.gz`,
      "sha256/aa/README",
    ];
    tree.write(Object.fromEntries(orphans.map((path) => [`blobs/${path}`, "x"])));
    clock.now = new Date(clock.now.getTime() + 2 * HOUR);
    await blobs.collect(new Set([digest]));
    expect(filesIn(tree).sort()).toEqual(expect.arrayContaining(["README", `${hex}.json`]));
    expect(filesIn(tree)).toHaveLength(3);
    expect(await read(blobs, digest)).toEqual(bytes);
  });

  it("does not interrupt a running download", async () => {
    const { blobs, clock } = setUp();
    const { digest, bytes } = noise(2_000_000);
    await blobs.put(chunked(bytes, 100_000), { owner: "ada" });
    const { stream } = await blobs.open(digest);
    clock.now = new Date(clock.now.getTime() + 2 * HOUR);
    await blobs.collect(new Set());
    expect(Buffer.concat(await stream.toArray())).toEqual(bytes);
  });

  it("does not remove what an upload has written so far, however long it takes", async () => {
    const { blobs, clock } = setUp();
    const { digest, bytes } = noise(3_000);
    async function* slowly() {
      for await (const chunk of chunked(bytes, 1_000)) {
        yield chunk;
        clock.now = new Date(clock.now.getTime() + 2 * HOUR);
        await blobs.collect(new Set());
      }
    }
    expect(await blobs.put(slowly(), { owner: "ada" })).toMatchObject({ digest });
    expect(await read(blobs, digest)).toEqual(bytes);
  });

  it("never leaves a record without its file, while uploads and sweeps of the same content race", async () => {
    const { blobs, clock } = setUp({ graceMs: -HOUR });
    const { digest, bytes } = noise(3_000);
    clock.now = new Date();
    for (let round = 0; round < 20; round += 1) {
      await Promise.all([
        blobs.put(chunked(bytes), { owner: "ada" }),
        blobs.collect(new Set()),
        blobs.put(chunked(bytes), { owner: "bob" }),
        blobs.collect(new Set()),
      ]);
      if ((await blobs.find(digest)) !== null) expect(await read(blobs, digest)).toEqual(bytes);
    }
  });
});

it("closes the file of a cancelled download that was not read", async () => {
  const { blobs } = setUp();
  const { digest, bytes } = noise(1_000);
  await blobs.put(chunked(bytes), { owner: "ada" });
  const before = statSync("/proc/self/fd").isDirectory() ? readdirSync("/proc/self/fd").length : 0;
  const streams = await Promise.all(Array.from({ length: 20 }, () => blobs.open(digest)));
  await Promise.all(
    streams.map(({ stream }) => {
      const closed = new Promise((resolve) => stream.once("close", resolve));
      stream.destroy();
      return closed;
    }),
  );
  await expect.poll(() => readdirSync("/proc/self/fd").length).toBeLessThan(before + 5);
});
