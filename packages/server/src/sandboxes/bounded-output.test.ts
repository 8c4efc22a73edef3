import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BoundedOutput } from "./bounded-output.ts";

describe("the output of a command", () => {
  it("is kept whole up to the limit, and beyond it loses only its middle", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.integer({ min: 0, max: 200 }), (parts, limit) => {
        const output = new BoundedOutput(limit);
        for (const part of parts) output.push(part);
        const all = Buffer.concat(parts);
        const kept = output.bytes();
        expect(kept.length + output.droppedBytes).toBe(all.length);
        expect(kept.length).toBe(Math.min(all.length, limit));
        const head = Math.min(all.length, Math.ceil(limit / 2));
        expect(kept.subarray(0, head)).toEqual(all.subarray(0, head));
        expect(kept.subarray(head)).toEqual(all.subarray(all.length - (kept.length - head)));
      }),
    );
  });
});
