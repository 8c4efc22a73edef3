import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundedChunks, boundedLines, clampDelayMs, readBoundedBytes, readBoundedText } from "./bounded-read.ts";

describe("readBoundedBytes", () => {
  it("returns exactly the bytes that were sent, or throws when they exceed the limit", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array()), fc.nat(100), async (parts, maxBytes) => {
        const sent = Buffer.concat(parts);
        const read = readBoundedBytes(sourceOf(parts), { maxBytes });
        if (sent.length > maxBytes) await expect(read).rejects.toThrow(`it is larger than ${maxBytes} bytes`);
        else expect(Buffer.from(await read)).toEqual(sent);
      }),
    );
  });

  it("closes a source that exceeds the limit, after one chunk more at the most", async () => {
    let produced = 0;
    let isClosed = false;
    async function* endless() {
      try {
        for (;;) {
          produced++;
          yield new Uint8Array(1_000);
        }
      } finally {
        isClosed = true;
      }
    }
    await expect(readBoundedText(endless(), { maxBytes: 5_000 })).rejects.toThrow("larger than 5000 bytes");
    expect({ produced, isClosed }).toEqual({ produced: 6, isClosed: true });
  });

  it("throws when the source stops sending, and does not wait for its next chunk", async () => {
    async function* silent() {
      yield new Uint8Array(1);
      await new Promise(() => {});
    }
    await expect(readBoundedText(silent(), { maxBytes: 10, timeoutMs: 5 })).rejects.toThrow("it did not arrive within 5 ms");
  });
});

describe("boundedChunks", () => {
  it("closes its source when the consumer stops", async () => {
    let isClosed = false;
    async function* source() {
      try {
        for (;;) yield new Uint8Array(1);
      } finally {
        isClosed = true;
      }
    }
    for await (const _ of boundedChunks(source(), { maxBytes: 10 })) break;
    expect(isClosed).toBe(true);
  });
});

describe("boundedLines", () => {
  const linesOf = async (parts: readonly Uint8Array[], maxLineLength: number) => {
    const lines: string[] = [];
    for await (const line of boundedLines(sourceOf(parts), { maxLineLength })) lines.push(line);
    return lines;
  };

  it("returns the lines of a text, wherever its bytes are divided", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 5 }), async (text, size) => {
        const bytes = Buffer.from(`${text}\n\n${text}`);
        const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
        const lines = bytes.toString("utf8").split("\n");
        expect(await linesOf(parts, 1_000)).toEqual(lines.at(-1) === "" ? lines.slice(0, -1) : lines);
      }),
    );
  });

  it("throws at a line that is too long, before its end arrives", async () => {
    async function* endless() {
      for (;;) yield Buffer.from("aaaa");
    }
    const lines = boundedLines(endless(), { maxLineLength: 10 });
    await expect(lines.next()).rejects.toThrow("it has a line of more than 10 characters");
    await expect(linesOf([Buffer.from("short\nlonger than ten\n")], 10)).rejects.toThrow("more than 10 characters");
  });
});

describe("an empty body of a Response", () => {
  it("is read as no bytes", async () => {
    expect(await readBoundedText(new Response(null).body, { maxBytes: 10 })).toBe("");
  });
});

describe("clampDelayMs", () => {
  it("returns a delay that a timer can take, for any number", () => {
    fc.assert(
      fc.property(fc.double(), fc.nat(), (ms, maxMs) => {
        const delay = clampDelayMs(ms, maxMs);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(maxMs);
      }),
    );
    expect(clampDelayMs(9_999_999_000, Number.POSITIVE_INFINITY)).toBe(2 ** 31 - 1);
  });
});

async function* sourceOf(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}
