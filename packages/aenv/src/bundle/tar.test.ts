import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readEntries, type TarEntry, writeTar } from "./tar.ts";

const part = fc.stringMatching(/^[a-zA-Z0-9._ äß-]{1,40}$/).filter((text) => text !== "." && text !== "..");
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
const bytes = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 500, maxLength: 1_100 }));
const files = fc.uniqueArray(fc.record({ path, bytes }), { selector: (entry) => entry.path, maxLength: 8 });

function fits(entries: readonly TarEntry[]): boolean {
  return entries.every((entry) => Buffer.byteLength(entry.path) <= 100);
}

describe("tar", () => {
  it("reads back what it wrote, sorted by path", async () => {
    await fc.assert(
      fc.asyncProperty(files.filter(fits), async (entries) => {
        const back = await readEntries(writeTar(entries));
        const sorted = [...entries].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
        expect(back.map(({ path, bytes }) => [path, [...bytes]])).toEqual(sorted.map(({ path, bytes }) => [path, [...bytes]]));
      }),
    );
  });

  it("writes the same bytes whatever the order of the entries", () => {
    fc.assert(
      fc.property(files.filter(fits), fc.nat(), (entries, seed) => {
        const shuffled = entries.map((entry, index) => ({ entry, key: (index * 7919 + seed) % 101 }));
        shuffled.sort((a, b) => a.key - b.key);
        expect(Buffer.compare(writeTar(entries), writeTar(shuffled.map(({ entry }) => entry)))).toBe(0);
      }),
    );
  });

  it("stores paths of up to 255 bytes with the prefix field, and refuses longer ones", async () => {
    const folder = fc.integer({ min: 1, max: 155 });
    const file = fc.integer({ min: 1, max: 100 });
    await fc.assert(
      fc.asyncProperty(folder, file, async (before, after) => {
        const long = `${"d".repeat(before)}/${"f".repeat(after)}`;
        expect((await readEntries(writeTar([{ path: long, bytes: new Uint8Array([7]) }])))[0]?.path).toBe(long);
      }),
    );
    const entry = (path: string) => [{ path, bytes: new Uint8Array() }];
    expect(() => writeTar(entry(`${"d".repeat(156)}/f`))).toThrow("too long");
    expect(() => writeTar(entry("f".repeat(101)))).toThrow("too long");
    expect(() => writeTar(entry(`d/${"f".repeat(101)}`))).toThrow("too long");
  });

  it.each(["../x", "a/../x", "/x", "a//x", "./x", "x/", "", "a\\x", "C:/x", "a\0b"])("refuses the path %j", (path) => {
    expect(() => writeTar([{ path, bytes: new Uint8Array() }])).toThrow("must not contain the path");
  });

  it("refuses to write or read a path twice", async () => {
    const entry = { path: "a", bytes: new Uint8Array() };
    expect(() => writeTar([entry, entry])).toThrow("twice");
    const one = writeTar([entry]).subarray(0, 512);
    await expect(readEntries(Buffer.concat([one, one, new Uint8Array(1024)]))).rejects.toThrow("twice");
  });

  it("refuses links and paths outside the folder when reading", async () => {
    for (const type of ["1", "2"]) await expect(readEntries(forge({ type }))).rejects.toThrow("link");
    for (const type of ["3", "5", "x"]) await expect(readEntries(forge({ type }))).rejects.toThrow("not a plain file");
    for (const name of ["../etc", "/etc", "a/./b"]) await expect(readEntries(forge({ name }))).rejects.toThrow("must not contain the path");
  });

  it("refuses damaged archives instead of reading wrong files", async () => {
    const whole = writeTar([{ path: "a/b", bytes: new Uint8Array(700).fill(1) }]);
    await fc.assert(
      fc.asyncProperty(fc.nat(511), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const damaged = Uint8Array.from(whole);
        damaged[at] = (damaged[at] as number) ^ flip;
        // The bytes after the checksum's digits have no meaning.
        if (at === 154 || at === 155) return;
        await expect(readEntries(damaged)).rejects.toThrow("the bundle");
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1_025), async (length) => {
        await expect(readEntries(whole.subarray(0, length))).rejects.toThrow("ends");
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 512, maxLength: 2_048 }), async (noise) => {
        if (noise.subarray(0, 512).some((byte) => byte !== 0)) await expect(readEntries(noise)).rejects.toThrow("the bundle");
      }),
    );
  });

  it("can be read by the system's tar", () => {
    const long = `${"folder/".repeat(16)}file.txt`;
    const archive = writeTar([
      { path: "ä.txt", bytes: Buffer.from("grün") },
      { path: long, bytes: Buffer.from("deep") },
    ]);
    const listed = execFileSync("tar", ["--quoting-style=literal", "-tf", "-"], { input: archive, encoding: "utf8" });
    expect(listed.trim().split("\n")).toEqual([long, "ä.txt"]);
  });
});

/** A one-file archive with a header field set by hand and a checksum that fits. */
function forge({ name, type }: { name?: string; type?: string }): Uint8Array {
  const archive = writeTar([{ path: "x", bytes: new Uint8Array() }]);
  if (name !== undefined) archive.set(Buffer.from(`${name}\0`), 0);
  if (type !== undefined) archive.set(Buffer.from(type), 156);
  archive.set(Buffer.from("        "), 148);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.set(Buffer.from(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  return archive;
}
