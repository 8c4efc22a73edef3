import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { meanOfGroups } from "./mean.ts";

describe("the mean with its interval", () => {
  it("is the textbook interval when every task has one sample", () => {
    // Mean 3, standard deviation sqrt(2.5), n = 5, t(4) = 2.776.
    const margin = 2.776 * Math.sqrt(2.5 / 5);
    const result = meanOfGroups([[1], [2], [3], [4], [5]]);
    expect(result?.mean).toBeCloseTo(3, 12);
    expect(result?.low).toBeCloseTo(3 - margin, 9);
    expect(result?.high).toBeCloseTo(3 + margin, 9);
  });

  it("does not shrink when each sample is repeated within its task", () => {
    const values = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 2, maxLength: 60 });
    fc.assert(
      fc.property(values, fc.integer({ min: 2, max: 8 }), (rewards, times) => {
        const once = meanOfGroups(rewards.map((reward) => [reward]));
        const often = meanOfGroups(rewards.map((reward) => Array.from({ length: times }, () => reward)));
        expect(often?.mean).toBeCloseTo(once?.mean as number, 9);
        expect(often?.high).toBeCloseTo(once?.high as number, 9);
      }),
    );
  });

  it("contains the mean and is symmetric about it", () => {
    const groups = fc.array(fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 1, maxLength: 8 }), { minLength: 2 });
    fc.assert(
      fc.property(groups, (rewards) => {
        const { mean, low, high } = meanOfGroups(rewards) as { mean: number; low: number; high: number };
        expect(low).toBeLessThanOrEqual(mean + 1e-9);
        expect(mean - low).toBeCloseTo(high - mean, 9);
      }),
    );
  });

  it("leaves tasks without a score out, and is nothing without any", () => {
    expect(meanOfGroups([[1], [], [0]])?.mean).toBe(0.5);
    expect(meanOfGroups([[], []])).toBeNull();
  });

  it("has no interval for a single task", () => {
    expect(meanOfGroups([[0, 1]])).toEqual({ mean: 0.5, low: null, high: null });
  });
});
