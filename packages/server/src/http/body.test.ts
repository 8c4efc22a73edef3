import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { readBody } from "./body.ts";

const patient = { timeoutMs: 60_000 };

describe("readBody", () => {
  it("reads a whole body within the limit, however it is split, and refuses a larger one", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 20 }), { maxLength: 10 }),
        fc.nat(100),
        async (pieces, maxBytes) => {
          const source = new PassThrough();
          const whole = Buffer.concat(pieces);
          for (const piece of pieces) source.write(piece);
          source.end();
          const read = readBody(source, { maxBytes, ...patient });
          if (whole.length <= maxBytes) expect(await read).toEqual(whole);
          else await expect(read).rejects.toMatchObject({ code: "request.too_large", details: { maxBytes } });
        },
      ),
    );
  });

  it("stops reading at the limit, without waiting for the end", async () => {
    const source = new PassThrough();
    const read = readBody(source, { maxBytes: 10, ...patient });
    source.write("x".repeat(11));
    await expect(read).rejects.toMatchObject({ code: "request.too_large" });
    expect(source.isPaused()).toBe(true);
  });

  it("refuses a client that sends too slowly, and one that disconnects", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const slow = new PassThrough();
      const given = readBody(slow, { maxBytes: 1_000_000, timeoutMs: 1_000 });
      const told = expect(given).rejects.toMatchObject({ code: "request.too_slow" });
      slow.write("{");
      await vi.advanceTimersByTimeAsync(1_001);
      await told;

      const large = new PassThrough();
      const taken = readBody(large, { maxBytes: 1_000_000, timeoutMs: 1_000 });
      large.write("x".repeat(64_000));
      await vi.advanceTimersByTimeAsync(1_500);
      large.end();
      expect((await taken).length).toBe(64_000);

      const gone = new PassThrough();
      const left = readBody(gone, { maxBytes: 10, timeoutMs: 1_000 });
      gone.destroy();
      await expect(left).rejects.toMatchObject({ code: "request.cancelled" });
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
