import { execFileSync } from "node:child_process";
import { readTar } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunked, sealed, tarOf } from "../fixtures/archives.ts";

async function read(tar: Uint8Array, chunkSize?: number): Promise<Record<string, string>> {
  const files: [string, string][] = [];
  for await (const { path, body } of readTar(chunked(tar, chunkSize))) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(Uint8Array.from(chunk));
    files.push([path, Buffer.concat(chunks).toString("latin1")]);
  }
  return Object.fromEntries(files);
}

describe("reading a tar", () => {
  it("reads every file for any size of chunks", async () => {
    const name = fc.stringMatching(/^[a-z0-9_ä]{1,30}$/);
    const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("/"));
    const files = fc.dictionary(path, fc.stringMatching(/^[ -~]{0,1500}$/), { maxKeys: 6 });
    await fc.assert(
      fc.asyncProperty(files, fc.integer({ min: 1, max: 3_000 }), async (wanted, chunkSize) => {
        const tar = tarOf(Object.entries(wanted).map(([path, bytes]) => ({ path, bytes })));
        expect(await read(tar, chunkSize)).toEqual({ ...wanted });
      }),
    );
  });

  it("skips the unread rest of a file", async () => {
    const paths: string[] = [];
    const tar = tarOf([
      { path: "a", bytes: "x".repeat(5_000) },
      { path: "b", bytes: "y" },
    ]);
    for await (const { path, body } of readTar(chunked(tar, 100))) {
      paths.push(path);
      for await (const _ of body) break;
    }
    expect(paths).toEqual(["a", "b"]);
  });

  it("reads what the system's tar writes in the ustar format", async () => {
    const tar = execFileSync("tar", ["--format=ustar", "-cf", "-", "-C", import.meta.dirname, "unpack.ts"]);
    expect(Object.keys(await read(tar))).toEqual(["unpack.ts"]);
  });

  it.each(["../x", "a/../../x", "/etc/passwd", "a//x", "./x", "x/", "..", ".", "a\\x", "C:/x", "a\nb", "a/\x7f", ""])(
    "refuses the path %j",
    async (path) => {
      await expect(read(tarOf([{ path }]))).rejects.toThrow("must not contain the path");
    },
  );

  it("refuses links, devices, folders and every extension of the format", async () => {
    for (const type of ["1", "2"]) await expect(read(tarOf([{ path: "x", type }]))).rejects.toThrow("contains a link");
    for (const type of ["3", "4", "5", "6", "7", "x", "g", "L", "K", "S", "D"]) {
      await expect(read(tarOf([{ path: "x", type }]))).rejects.toThrow("not a plain file");
    }
  });

  it("refuses setuid, setgid and sticky modes", async () => {
    for (const mode of [0o4755, 0o2755, 0o1777]) await expect(read(tarOf([{ path: "x", mode }]))).rejects.toThrow("invalid mode");
    await expect(read(tarOf([{ path: "x", mode: 0o755 }]))).resolves.toBeDefined();
  });

  it("refuses a size that is not octal", async () => {
    const tar = tarOf([{ path: "x" }]);
    tar[124] = 0x80;
    sealed(tar.subarray(0, 512));
    await expect(read(tar)).rejects.toThrow("not UTF-8");
    tar.write("-0000000001\0", 124);
    sealed(tar.subarray(0, 512));
    await expect(read(tar)).rejects.toThrow("damaged size");
  });

  it("refuses a truncated archive, and data after the end", async () => {
    const whole = tarOf([{ path: "a/b", bytes: "x".repeat(700) }]);
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), async (length) => {
        await expect(read(whole.subarray(0, length))).rejects.toThrow(/ends/);
      }),
    );
    await expect(read(Buffer.concat([whole, new Uint8Array(9_000)]))).resolves.toBeDefined();
    await expect(read(Buffer.concat([whole, Buffer.from("x")]))).rejects.toThrow("after its end");
    await expect(read(tarOf([], Buffer.concat([new Uint8Array(512), Buffer.alloc(512, 1)])))).rejects.toThrow("does not end");
    await expect(read(tarOf([{ path: "x", bytes: "1", size: 8 ** 11 - 1 }]))).rejects.toThrow("ends within");
  });

  it("reads files or throws a bundle error for any bytes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3_000 }), async (noise) => {
        await read(noise).catch((error) => expect(error.message).toMatch(/^the bundle /));
      }),
    );
  });

  it("refuses a damaged header instead of reading another file", async () => {
    const whole = tarOf([{ path: "a/b", bytes: "1" }]);
    await fc.assert(
      fc.asyncProperty(fc.nat(511), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        // The bytes behind the checksum's digits carry nothing.
        if (at === 154 || at === 155) return;
        const damaged = Buffer.from(whole);
        damaged[at] = (damaged[at] as number) ^ flip;
        await expect(read(damaged)).rejects.toThrow("the bundle");
      }),
    );
  });
});
