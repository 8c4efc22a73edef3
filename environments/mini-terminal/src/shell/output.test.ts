import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OutputLimiter } from "./output.ts";

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 80 }),
  fc.string({ unit: "binary", maxLength: 40 }).map((text) => new Uint8Array(Buffer.from(text))),
);

function shown(limit: number, chunks: readonly Uint8Array[]) {
  const limiter = new OutputLimiter(limit);
  for (const chunk of chunks) limiter.push(Buffer.from(chunk));
  return limiter.show();
}

describe("an output limiter", () => {
  it("shows an output that is not longer than the limit as it is", () => {
    fc.assert(
      fc.property(fc.array(bytes), (chunks) => {
        const whole = Buffer.concat(chunks);
        expect(shown(whole.length, chunks)).toEqual({ text: whole.toString("utf8"), cutBytes: 0 });
      }),
    );
  });

  it("shows the same however the output is divided into chunks", () => {
    fc.assert(
      fc.property(fc.array(bytes), fc.integer({ min: 0, max: 60 }), (chunks, limit) => {
        expect(shown(limit, chunks)).toEqual(shown(limit, [Buffer.concat(chunks)]));
      }),
    );
  });

  it("keeps the beginning and the end of a longer output, says how much is missing, and breaks no character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 200 }), fc.integer({ min: 0, max: 60 }), (text, limit) => {
        const whole = Buffer.from(text);
        const { text: cut, cutBytes } = shown(limit, [whole]);
        if (whole.length <= limit) return;
        const at = cut.indexOf(`\n[... ${cutBytes} bytes cut out ...]\n`);
        const [head, tail] = [cut.slice(0, at), cut.slice(at + `\n[... ${cutBytes} bytes cut out ...]\n`.length)];
        expect([whole.toString("utf8").startsWith(head), whole.toString("utf8").endsWith(tail)]).toEqual([true, true]);
        const kept = Buffer.byteLength(head) + Buffer.byteLength(tail);
        expect(kept + cutBytes).toBe(whole.length);
        expect(kept).toBeLessThanOrEqual(limit);
        // At most three bytes of a character are dropped on each side.
        expect(kept).toBeGreaterThanOrEqual(limit - 6);
      }),
    );
  });

  it("needs little memory for a long output", () => {
    const limiter = new OutputLimiter(1_000);
    const chunk = Buffer.alloc(64 * 1024, "x");
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < 2_000; at++) limiter.push(Buffer.from(chunk));
    limiter.push(Buffer.from("end"));
    expect(limiter.show().text).toMatch(/^x{500}\n\[\.\.\. 131071003 bytes cut out \.\.\.\]\nx{497}end$/);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 1024 * 1024);
  });
});
