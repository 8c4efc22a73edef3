import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorOfMean, mean, median, quantile } from "./statistics.ts";

// Adding 0 turns -0 into 0.
const value = fc.double({ noNaN: true, min: -1e9, max: 1e9 }).map((one) => one + 0);
const values = fc.array(value, { minLength: 1, maxLength: 50 });
const share = fc.double({ noNaN: true, min: 0, max: 1 });

describe("median", () => {
  it("is the middle value, or the mean of the two middle values", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([7])).toBe(7);
  });

  it("sorts by number and does not change its input", () => {
    const given = [10, 9, 100];
    expect(median(given)).toBe(10);
    expect(given).toEqual([10, 9, 100]);
  });
});

describe("quantile", () => {
  it("ranges from the smallest to the largest", () => {
    fc.assert(
      fc.property(values, (given) => {
        expect(quantile(given, 0)).toBe(Math.min(...given));
        expect(quantile(given, 1)).toBe(Math.max(...given));
      }),
    );
  });

  it("never decreases as the share grows", () => {
    fc.assert(
      fc.property(values, share, share, (given, one, other) => {
        const [low, high] = [quantile(given, Math.min(one, other)), quantile(given, Math.max(one, other))];
        // Interpolation may have a rounding error.
        expect(low).toBeLessThanOrEqual(high + Math.abs(high) * 1e-12);
      }),
    );
  });

  it("does not depend on the order", () => {
    fc.assert(
      fc.property(values, share, (given, at) => {
        expect(quantile(given.toReversed(), at)).toBe(quantile(given, at));
      }),
    );
  });

  it("rejects an empty list and a share outside 0 to 1", () => {
    expect(() => quantile([], 0.5)).toThrow("at least one value");
    expect(() => quantile([1], 1.5)).toThrow("share is 1.5");
  });
});

describe("the standard error of a mean", () => {
  it("does not grow with what depends on the point at which a value was measured", () => {
    expect(mean([0, 0, 0, 0, 10, 10, 10, 10])).toBe(5);
    expect(errorOfMean([0, 0, 0, 0, 10, 10, 10, 10])).toBe(1.25);
    expect(errorOfMean([0, 10, 0, 10, 0, 10, 0, 10])).toBe(2.5);
    expect(errorOfMean([7, 7, 7])).toBe(0);
  });

  it("is that of independent values, on average", () => {
    const random = (seed: number) => Math.abs(Math.sin(seed * 12.9898) * 43_758.5453) % 1;
    const means: number[] = [];
    const errors: number[] = [];
    for (let run = 0; run < 500; run++) {
      const given = Array.from({ length: 20 }, (_, n) => random(run * 20 + n + 1));
      means.push(mean(given));
      errors.push(errorOfMean(given) ** 2);
    }
    const spread = mean(means.map((one) => (one - mean(means)) ** 2));
    expect(mean(errors) / spread).toBeGreaterThan(0.8);
    expect(mean(errors) / spread).toBeLessThan(1.25);
  });

  it.each([[[]], [[1]]])("is not known for %j", (given) => {
    expect(() => errorOfMean(given)).toThrow(RangeError);
  });
});
