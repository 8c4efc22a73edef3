import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readArchive } from "./archive-entry.ts";
import { folderArchive } from "./archive-folder.ts";

const folder = mkdtempSync(join(tmpdir(), "tar-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LONG = `${"long-".repeat(30)}name.txt`;
mkdirSync(join(folder, "in/größe"), { recursive: true });
writeFileSync(join(folder, "in/größe/a.txt"), "text\n");
writeFileSync(join(folder, "in", LONG), "x".repeat(3_000), { mode: 0o755 });
writeFileSync(join(folder, "in/empty"), "");
symlinkSync("empty", join(folder, "in/link"));

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function bytesOf(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}

it("an archive of a folder is read by tar, and by this reader in pieces of any size", async () => {
  const archive = await bytesOf(folderArchive(join(folder, "in")));
  writeFileSync(join(folder, "in.tar"), archive);
  const listed = execFileSync("tar", ["--list", "--quoting-style=literal", "--file", join(folder, "in.tar")], { encoding: "utf8" });
  expect(listed.trim().split("\n").sort()).toEqual(["empty", "größe", "größe/a.txt", "link", LONG].sort());
  for (const size of [1, 511, 512, 100_000]) {
    const read: unknown[] = [];
    for await (const { path, type, target, content } of readArchive(pieces(archive, size)))
      read.push([path, type, target, (await bytesOf(content)).length]);
    expect(read).toEqual([
      ["empty", "file", "", 0],
      ["größe", "directory", "", 0],
      ["größe/a.txt", "file", "", 5],
      ["link", "link", "empty", 0],
      [LONG, "file", "", 3_000],
    ]);
  }
});

it("a content that is not read is skipped, and a cut archive is an error", async () => {
  const archive = await bytesOf(folderArchive(join(folder, "in")));
  const paths: string[] = [];
  for await (const { path } of readArchive(pieces(archive, 700))) paths.push(path);
  expect(paths).toHaveLength(5);
  const cut = async () => {
    for await (const { content } of readArchive(pieces(archive.subarray(0, archive.length - 2_000), 700))) await bytesOf(content);
  };
  await expect(cut()).rejects.toThrow(/ends (?:within|too early)/);
});
