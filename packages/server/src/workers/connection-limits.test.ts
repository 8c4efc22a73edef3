import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { connectionLimits } from "./connection-limits.ts";

describe("the connections of workers", () => {
  it("are not limited separately while there are few", () => {
    expect(connectionLimits([10, 60], 100)).toEqual([100, 100]);
  });

  it("near the limit share what is left", () => {
    expect(connectionLimits([50, 45], 100)).toEqual([52, 46]);
    expect(connectionLimits([70, 50], 100)).toEqual([70, 50]);
  });

  it("together reach the limit of the port, except for one each, and never exceed it", () => {
    const counts = fc.array(fc.nat(1_000), { minLength: 1, maxLength: 16 });
    fc.assert(
      fc.property(counts, fc.integer({ min: 1, max: 10_000 }), (open, max) => {
        const total = open.reduce((sum, one) => sum + one, 0);
        fc.pre(total >= max * 0.8);
        const limits = connectionLimits(open, max);
        expect(limits.reduce((sum, one) => sum + one, 0)).toBe(Math.max(max - open.length, total));
        expect(limits.every((limit, index) => limit >= (open[index] as number))).toBe(true);
      }),
    );
  });
});
