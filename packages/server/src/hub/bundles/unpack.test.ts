import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync, gzipSync } from "node:zlib";
import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bundleOf, chunked, type Entry, packed, tarOf } from "../fixtures/archives.ts";
import { unpack, unpackLimits } from "./unpack.ts";

const files = { "main.js": "run()", "config.json": "{}", "data/a/b.json": "[1]" };

describe("unpacking a bundle", () => {
  it("writes every file as readable by all and read-only", async () => {
    using tree = temporaryTree();
    const { digest, bytes } = bundleOf(files);
    const target = join(tree.path, "new");
    const manifest = await unpack(chunked(bytes), target, { digest });
    expect(manifest).toMatchObject({ name: "demo", version: "1.0.0", main: "main.js" });
    for (const [path, text] of Object.entries(files)) expect(readFileSync(join(target, path), "utf8")).toBe(text);
    expect(statSync(join(target, "main.js")).mode & 0o777).toBe(0o444);
  });

  it("refuses a bundle with another digest than expected", async () => {
    const other = bundleOf({ "main.js": "other()" });
    await expect(attempt(bundleOf(files).bytes, { digest: other.digest })).rejects.toThrow(`not ${other.digest}`);
  });

  it.each<[string, Entry[], string]>([
    ["a path that climbs out", [{ path: "../../evil", bytes: "x" }], "must not contain the path"],
    ["an absolute path", [{ path: "/tmp/evil", bytes: "x" }], "must not contain the path"],
    [
      "a symbolic link",
      [
        { path: "link", type: "2" },
        { path: "link/evil", bytes: "x" },
      ],
      "contains a link",
    ],
    ["a hard link", [{ path: "link", type: "1" }], "contains a link"],
    ["a device", [{ path: "null", type: "3" }], "not a plain file"],
    ["a path twice", [{ path: "main.js", bytes: "evil()" }], "twice"],
    ["a path that a case-blind disk takes for another", [{ path: "MAIN.js", bytes: "evil()" }], "twice"],
    ["a path that another way of writing ä makes the same", [{ path: "\u00e4" }, { path: "a\u0308" }], "twice"],
    ["a file in place of a folder", [{ path: "data" }], "as a file and as a folder"],
    ["a folder in place of a file", [{ path: "main.js/x" }], "as a file and as a folder"],
    ["a set-user-id program", [{ path: "su", mode: 0o4755 }], "invalid mode"],
    ["a file that its manifest does not list", [{ path: "extra", bytes: "x" }], "does not list"],
  ])("refuses %s", async (_, extra, message) => {
    await expect(attempt(bundleOf(files, { extra }).bytes)).rejects.toThrow(message);
  });

  it("refuses a manifest that is missing, damaged or false", async () => {
    const with_ = (manifest: string) =>
      packed(
        tarOf([
          { path: "main.js", bytes: "x" },
          { path: "manifest.json", bytes: manifest },
        ]),
      ).bytes;
    const claim = (file: object) => JSON.stringify({ format: 1, name: "a", version: "1", main: "main.js", files: [file] });
    const sha256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    await expect(attempt(with_(claim({ path: "main.js", size: 1, sha256 })))).resolves.toBeDefined();
    await expect(attempt(with_(claim({ path: "main.js", size: 1, sha256: "0".repeat(64) })))).rejects.toThrow(
      "differs from its entry in manifest.json",
    );
    await expect(attempt(with_(claim({ path: "other.js", size: 1, sha256 })))).rejects.toThrow("lacks");
    await expect(attempt(with_("{"))).rejects.toThrow("not JSON");
    await expect(attempt(with_('{"format":2}'))).rejects.toThrow("invalid manifest.json");
    await expect(attempt(packed(tarOf([{ path: "main.js" }])).bytes)).rejects.toThrow("has no manifest.json");
  });

  it("stops at too many files and at too many bytes", async () => {
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}`, "x"]));
    await expect(attempt(bundleOf({ ...files, ...many }).bytes, { limits: { ...unpackLimits, maxFiles: 10 } })).rejects.toThrow(
      "more than 10 files",
    );
    const big = bundleOf({ ...files, big: "x".repeat(100_000) }).bytes;
    await expect(attempt(big, { limits: { ...unpackLimits, maxUnpackedBytes: 50_000 } })).rejects.toThrow("more than 50000 bytes");
  });

  it("refuses a header that announces more than the limit before reading the file", async () => {
    await expect(attempt(packed(tarOf([{ path: "a", size: 2 ** 31 }])).bytes)).rejects.toThrow("bytes");
  });

  it("stops a decompression bomb by its ratio, after writing a fraction of it", async () => {
    const limits = { ...unpackLimits, freeBytes: 2 ** 20 };
    const bomb = bombOf(64);
    expect(bomb.length).toBeLessThan(100_000);
    using tree = temporaryTree();
    await expect(unpack(chunked(bomb, 500), join(tree.path, "new"), { limits })).rejects.toThrow("times its size");
    const written = statSync(join(tree.path, "new/bomb")).size;
    expect(written).toBeLessThan(16 * 2 ** 20);
  });

  it("refuses what is not gzip, is damaged or is truncated", async () => {
    const { bytes } = bundleOf(files);
    await expect(attempt(Buffer.from("no"))).rejects.toMatchObject({ code: "bundle.invalid" });
    await expect(attempt(deflateRawSync("no"))).rejects.toMatchObject({ code: "bundle.invalid" });
    await expect(attempt(gzipSync("no tar"))).rejects.toThrow("ends too early");
    await expect(attempt(new Uint8Array())).rejects.toMatchObject({ code: "bundle.invalid" });
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), async (length) => {
        await expect(attempt(bytes.subarray(0, length))).rejects.toMatchObject({ code: "bundle.invalid" });
      }),
      { numRuns: 30 },
    );
  });
});

describe("unpacking arbitrary bytes", () => {
  const part = fc.oneof(
    fc.constantFrom("..", ".", "", "a", "b", "A", "main.js", "manifest.json", "\u00e4", "a\u0308", "\\", "~", "C:"),
    fc.string({ maxLength: 5 }),
  );
  const entry = fc.record({
    path: fc.tuple(fc.constantFrom("", "/", "//"), fc.array(part, { maxLength: 4 })).map(([root, parts]) => root + parts.join("/")),
    bytes: fc.string({ maxLength: 700 }),
    type: fc.constantFrom("0", "0", "0", "0", "\0", "1", "2", "3", "5", "x", "L"),
    mode: fc.constantFrom(0o644, 0o644, 0o755, 0o4755, 0),
    size: fc.option(fc.nat(2_000), { nil: undefined }),
  });
  const tar = fc
    .array(entry, { maxLength: 5 })
    .map((entries) => tarOf(entries.map(({ size, ...rest }) => (size === undefined ? rest : { ...rest, size }))));
  const input = fc.oneof(
    tar.map((bytes) => gzipSync(bytes)),
    fc.uint8Array({ maxLength: 2_000 }).map((bytes) => gzipSync(bytes)),
    fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
    fc.tuple(tar, fc.nat(), fc.nat(255)).map(([bytes, at, flip]) => {
      const zipped = gzipSync(bytes);
      zipped[at % zipped.length] = flip;
      return zipped;
    }),
  );

  it("writes nothing outside the folder, and terminates", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(input, async (bytes) => {
        using tree = temporaryTree({ "beside.txt": "untouched", "room/neighbour/x": "untouched" });
        await unpack(chunked(bytes, 700), join(tree.path, "room/target")).catch((error) =>
          expect(error).toMatchObject({ code: "bundle.invalid" }),
        );
        expect(readdirSync(tree.path).sort()).toEqual(["beside.txt", "room"]);
        expect(readdirSync(join(tree.path, "room")).sort()).toEqual(["neighbour", "target"]);
        expect(readdirSync(join(tree.path, "room/neighbour"))).toEqual(["x"]);
        for (const path of ["beside.txt", "room/neighbour/x"]) expect(readFileSync(join(tree.path, path), "utf8")).toBe("untouched");
      }),
      { numRuns: 200 },
    );
  });
});

async function attempt(bytes: Uint8Array, options: Parameters<typeof unpack>[2] = {}) {
  using tree = temporaryTree();
  return await unpack(chunked(bytes), join(tree.path, "new"), options);
}

/** Megabytes of zeros in a few kilobytes. */
function bombOf(megabytes: number): Buffer {
  const size = megabytes * 2 ** 20;
  const tar = tarOf([{ path: "bomb", bytes: new Uint8Array(size) }]);
  return gzipSync(tar, { level: 9 });
}
