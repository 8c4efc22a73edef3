import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { PlatformError } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunked } from "../fixtures/archives.ts";
import { archiveLimits, gunzip } from "./gunzip.ts";

const limits = archiveLimits;

async function join(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

/** Sends some bytes, then nothing, without an end. */
async function* stalling(bytes: Uint8Array, onStall: () => void = () => {}): AsyncGenerator<Uint8Array> {
  yield bytes;
  onStall();
  await new Promise(() => {});
}

describe("gunzip", () => {
  it("decompresses any content in chunks of any size", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5_000 }), fc.integer({ min: 1, max: 600 }), async (bytes, size) => {
        expect(await gunzip(chunked(gzipSync(bytes), size), { limits }, join)).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it("refuses the same damaged bytes as the library does", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.nat(), fc.nat(255), async (bytes, at, flip) => {
        const zipped = gzipSync(bytes);
        zipped[at % zipped.length] = flip;
        let whole: Buffer | null = null;
        try {
          whole = gunzipSync(zipped);
        } catch {}
        const streamed = await gunzip(chunked(zipped, 7), { limits }, join).catch((error) => {
          expect(error).toMatchObject({ code: "bundle.invalid" });
          return null;
        });
        expect(streamed).toEqual(whole);
      }),
    );
  });

  it("stops at the size and at the ratio", async () => {
    const zeros = gzipSync(new Uint8Array(4 * 2 ** 20));
    await expect(gunzip(chunked(zeros), { limits: { ...limits, maxUnpackedBytes: 2 ** 20 } }, join)).rejects.toThrow(
      "more than 1048576 bytes",
    );
    await expect(gunzip(chunked(zeros), { limits: { ...limits, freeBytes: 2 ** 20 } }, join)).rejects.toThrow("200 times its size");
    await expect(gunzip(chunked(zeros), { limits }, join)).resolves.toHaveLength(4 * 2 ** 20);
  });

  it("stops waiting for a silent source when aborted", async () => {
    const abort = new AbortController();
    const source = stalling(gzipSync("x").subarray(0, 12), () => abort.abort());
    await expect(gunzip(source, { limits, signal: abort.signal }, join)).rejects.toMatchObject({ code: "request.cancelled" });
    await expect(gunzip(stalling(gzipSync("x")), { limits, signal: AbortSignal.abort() }, join)).rejects.toMatchObject({
      code: "request.cancelled",
    });
    const draining = AbortSignal.abort(new PlatformError("server.draining", "the server stops"));
    await expect(gunzip(stalling(gzipSync("x")), { limits, signal: draining }, join)).rejects.toMatchObject({ code: "server.draining" });
  });

  it("reports invalid bytes without waiting for a silent source", async () => {
    await expect(gunzip(stalling(Buffer.from("not gzip at all")), { limits }, join)).rejects.toMatchObject({ code: "bundle.invalid" });
    const refuse = async (chunks: AsyncIterable<Uint8Array>) => {
      for await (const _ of chunks) throw new Error("not wanted");
    };
    await expect(gunzip(stalling(gzipSync(new Uint8Array(100_000))), { limits }, refuse)).rejects.toThrow("not wanted");
  });

  it("stops reading a source after refusing it", async () => {
    const source = new Readable({ read() {} });
    const seen: number[] = [];
    const onPacked = async (chunk: Uint8Array) => void seen.push(chunk.length);
    const refuse = async (chunks: AsyncIterable<Uint8Array>) => {
      for await (const _ of chunks) throw new Error("not wanted");
    };
    const bytes = gzipSync(new Uint8Array(200_000));
    source.push(bytes.subarray(0, 150));
    await expect(gunzip(source, { limits, onPacked }, refuse)).rejects.toThrow("not wanted");
    source.push(bytes.subarray(150));
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([150]);
    source.destroy();
  });

  it("leaves the source open on an error, so that a response can be sent", async () => {
    const source = new Readable({ read() {} });
    source.push("no gzip");
    await expect(gunzip(source, { limits }, join)).rejects.toMatchObject({ code: "bundle.invalid" });
    expect(source.destroyed).toBe(false);
    source.destroy();
  });

  it("buffers only a few chunks of a large stream", async () => {
    const block = gzipSync(randomBytes(2 ** 20), { level: 0 });
    let [unpacked, most] = [0, 0];
    const members = async function* () {
      for (let at = 0; at < 256; at += 1) {
        yield Uint8Array.from(block);
        most = Math.max(most, process.memoryUsage().arrayBuffers);
      }
    };
    const before = process.memoryUsage().arrayBuffers;
    await gunzip(members(), { limits }, async (chunks) => {
      for await (const chunk of chunks) unpacked += chunk.length;
    });
    expect(unpacked).toBe(256 * 2 ** 20);
    expect(most - before).toBeLessThan(128 * 2 ** 20);
  });

  it("passes on an error of the source", async () => {
    const broken = async function* () {
      yield gzipSync("x").subarray(0, 5);
      throw new Error("connection reset");
    };
    await expect(gunzip(broken(), { limits }, join)).rejects.toThrow("connection reset");
  });
});
