import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { openArchive, packArchive, unpackArchive } from "./archive.ts";

const entries = [
  { path: "main.js", bytes: Buffer.from("export {};") },
  { path: "data/a.json", bytes: Buffer.from("[]") },
];

it("gives the same bytes and the same digest for the same files", async () => {
  const [one, two] = [packArchive(entries), packArchive([...entries].reverse())];
  expect(one.digest).toBe(two.digest);
  expect(Buffer.compare(one.bytes, two.bytes)).toBe(0);
  expect((await openArchive(one.bytes)).digest).toBe(one.digest);
});

it("has no time and no system in the gzip header", () => {
  expect([...packArchive(entries).bytes.subarray(0, 10)]).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
});

it("unpacks into a folder that it creates", async () => {
  const folder = mkdtempSync(join(tmpdir(), "aenv-archive-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await unpackArchive(packArchive(entries).bytes, join(folder, "new"));
  expect(readFileSync(join(folder, "new/data/a.json"), "utf8")).toBe("[]");
});

it("refuses what is not an archive", async () => {
  await expect(openArchive(Buffer.from("no"))).rejects.toThrow("not a gzip file");
  await expect(openArchive(gzipSync("no tar"))).rejects.toThrow("ends too early");
});
