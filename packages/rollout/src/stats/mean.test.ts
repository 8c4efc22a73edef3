import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { meanOfGroups } from "./mean.ts";

const reward = fc.double({ min: -5, max: 5, noNaN: true });

/** Numbers from 0 to 1 that are the same in every run of the test. */
function prand(seed: number): () => number {
  let state = seed;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe("the mean with its interval", () => {
  it("is the textbook interval when every task has one sample", () => {
    // Mean 3, standard deviation sqrt(2.5), n = 5, t(4) = 2.776.
    const margin = 2.776 * Math.sqrt(2.5 / 5);
    const result = meanOfGroups([[1], [2], [3], [4], [5]]);
    expect(result?.mean).toBeCloseTo(3, 12);
    expect(result?.low).toBeCloseTo(3 - margin, 9);
    expect(result?.high).toBeCloseTo(3 + margin, 9);
  });

  it.each([
    [31, 2.0395],
    [41, 2.0195],
    [61, 1.9996],
    [101, 1.9837],
    [1001, 1.9623],
  ])("uses Student's t beyond the table: %i degrees of freedom, %d", (degrees, t) => {
    // The values 0 and 1, half each, so that the standard error is known.
    const values = Array.from({ length: degrees + 1 }, (_, at) => at % 2);
    const error = Math.sqrt(0.25 / degrees);
    const { high } = meanOfGroups(values.map((value) => [value])) as { high: number };
    expect((high - 0.5) / error).toBeCloseTo(t, 3);
  });

  it("is the interval of the tasks' means when all tasks have as many samples", () => {
    const size = fc.integer({ min: 1, max: 6 });
    const groups = size.chain((length) =>
      fc.array(fc.array(reward, { minLength: length, maxLength: length }), { minLength: 2, maxLength: 40 }),
    );
    fc.assert(
      fc.property(groups, (rewards) => {
        const ofMeans = meanOfGroups(rewards.map((own) => [own.reduce((sum, one) => sum + one, 0) / own.length]));
        expect(meanOfGroups(rewards)?.mean).toBeCloseTo(ofMeans?.mean as number, 9);
        expect(meanOfGroups(rewards)?.high).toBeCloseTo(ofMeans?.high as number, 9);
      }),
    );
  });

  it("has the cluster-robust error: every pair of samples of a task counts, whatever the sizes of the groups", () => {
    fc.assert(
      fc.property(fc.array(fc.array(reward, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 30 }), (rewards) => {
        const all = rewards.flat();
        const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
        let pairs = 0;
        for (const own of rewards) for (const a of own) for (const b of own) pairs += (a - mean) * (b - mean);
        const error = Math.sqrt((Math.max(0, pairs) * rewards.length) / (rewards.length - 1)) / all.length;
        // One value a group, with the same number of groups, shows which t is used.
        const plain = meanOfGroups(rewards.map((_, at) => [at])) as { mean: number; high: number };
        const g = rewards.length;
        const t = (plain.high - plain.mean) / Math.sqrt((g + 1) / 12);
        const { mean: found, high } = meanOfGroups(rewards) as { mean: number; high: number };
        expect(high - found).toBeCloseTo(t * error, 6);
      }),
    );
  });

  it("covers the true mean in about 95 % of runs, also when the tasks differ a lot", () => {
    // 2,000 runs of 30 tasks with 4 samples; a task's chance to pass is uniform, so the true mean is 0.5.
    const random = prand(7);
    let covered = 0;
    for (let run = 0; run < 2_000; run++) {
      const groups = Array.from({ length: 30 }, () => {
        const chance = random();
        return Array.from({ length: 4 }, () => Number(random() < chance));
      });
      const { low, high } = meanOfGroups(groups) as { low: number; high: number };
      if (low <= 0.5 && high >= 0.5) covered++;
    }
    expect(covered / 2_000).toBeGreaterThan(0.93);
    expect(covered / 2_000).toBeLessThan(0.97);
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
