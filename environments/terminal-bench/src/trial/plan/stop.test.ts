import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type StepOutcome, stopsAfter, trialRewards } from "./stop.ts";

const verified = (rewards: Record<string, number> | null): StepOutcome => ({ rewards, isVerified: true, hasException: false });
const failed: StepOutcome = { rewards: null, isVerified: false, hasException: true };

describe("a trial with steps", () => {
  it("ends after a step that failed without a verification", () => {
    expect(stopsAfter(failed, null)).toBe(true);
    expect(stopsAfter({ ...verified({ reward: 0 }), hasException: true }, null)).toBe(false);
  });

  it("ends below a threshold; a missing reward is below every one", () => {
    expect(stopsAfter(verified({ reward: 0.5 }), 0.5)).toBe(false);
    expect(stopsAfter(verified({ reward: 0.4 }), 0.5)).toBe(true);
    expect(stopsAfter(verified({ a: 1 }), { a: 1, b: -5 })).toBe(true);
    expect(stopsAfter(verified(null), 0)).toBe(true);
  });

  it("has the mean over its verified steps; a missing key counts as 0", () => {
    expect(trialRewards([verified({ a: 1 }), verified({ a: 0, b: 1 }), failed], "mean")).toEqual({ a: 0.5, b: 0.5 });
    expect(trialRewards([failed], null)).toBeNull();
    expect(trialRewards([verified({})], null)).toBeNull();
  });

  it("has the reward of the last step with the strategy final, also none", () => {
    expect(trialRewards([verified({ a: 1 }), verified(null)], "final")).toBeNull();
    expect(trialRewards([verified({ a: 1 }), verified({ b: 2 })], "final")).toEqual({ b: 2 });
  });

  it("has a mean between the lowest and the highest reward", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 1 }), (values) => {
        const mean =
          trialRewards(
            values.map((reward) => verified({ reward })),
            null,
          )?.reward ?? Number.NaN;
        return mean >= Math.min(...values) - 1e-9 && mean <= Math.max(...values) + 1e-9;
      }),
    );
  });
});
