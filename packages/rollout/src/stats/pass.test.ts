import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { passAtK, passHatK } from "./pass.ts";

/** Samples, passes and k that fit together. */
const counts = fc
  .integer({ min: 1, max: 40 })
  .chain((samples) => fc.tuple(fc.constant(samples), fc.integer({ min: 0, max: samples }), fc.integer({ min: 1, max: samples })));

function choose(n: number, k: number): number {
  let result = 1;
  for (let i = 0; i < k; i++) result = (result * (n - i)) / (i + 1);
  return k > n ? 0 : Math.round(result);
}

/** Every choice of k of these values. */
function choicesOf<T>(values: readonly T[], k: number): T[][] {
  if (k === 0) return [[]];
  return values.flatMap((value, at) => choicesOf(values.slice(at + 1), k - 1).map((rest) => [value, ...rest]));
}

describe("pass@k and pass^k", () => {
  it("equal their closed forms", () => {
    fc.assert(
      fc.property(counts, ([samples, passes, k]) => {
        expect(passAtK(samples, passes, k)).toBeCloseTo(1 - choose(samples - passes, k) / choose(samples, k), 9);
        expect(passHatK(samples, passes, k)).toBeCloseTo(choose(passes, k) / choose(samples, k), 9);
      }),
    );
  });

  it("are the shares of all choices of k samples of which one passes, and of which all pass", () => {
    const samples = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });
    const chosen = samples.chain((results) => fc.tuple(fc.constant(results), fc.integer({ min: 1, max: results.length })));
    fc.assert(
      fc.property(chosen, ([results, k]) => {
        const choices = choicesOf(results, k);
        const passes = results.filter(Boolean).length;
        const share = (isCounted: (choice: readonly boolean[]) => boolean) => choices.filter(isCounted).length / choices.length;
        expect(passAtK(results.length, passes, k)).toBeCloseTo(
          share((choice) => choice.some(Boolean)),
          12,
        );
        expect(passHatK(results.length, passes, k)).toBeCloseTo(
          share((choice) => choice.every(Boolean)),
          12,
        );
      }),
    );
  });

  it("are both the share of passes for k = 1", () => {
    fc.assert(
      fc.property(counts, ([samples, passes]) => {
        expect(passAtK(samples, passes, 1)).toBeCloseTo(passes / samples, 12);
        expect(passHatK(samples, passes, 1)).toBeCloseTo(passes / samples, 12);
      }),
    );
  });

  it("mirror each other: all of k fail exactly when none of k passes", () => {
    fc.assert(
      fc.property(counts, ([samples, passes, k]) => {
        expect(passAtK(samples, passes, k)).toBeCloseTo(1 - passHatK(samples, samples - passes, k), 9);
      }),
    );
  });

  it("have no bias: averaged over all samples of size n from a population, they give the population's own chance", () => {
    // A population of 6 with 2 passes, sampled 4 at a time; the chance for k = 2 in the population is known by counting.
    const population = [1, 1, 0, 0, 0, 0];
    const subsets = population.flatMap((_, a) => population.slice(a + 1).map((__, b) => [a, a + 1 + b]));
    const samples = subsets.map(([a, b]) => population.filter((_, at) => at !== a && at !== b));
    const mean = (value: (passes: number) => number) =>
      samples.reduce((sum, one) => sum + value(one.filter((passed) => passed === 1).length), 0) / samples.length;
    expect(mean((passes) => passAtK(4, passes, 2))).toBeCloseTo(1 - choose(4, 2) / choose(6, 2), 12);
    expect(mean((passes) => passHatK(4, passes, 2))).toBeCloseTo(choose(2, 2) / choose(6, 2), 12);
  });

  it.each([
    [4, 5, 1],
    [4, 2, 5],
    [4, 2, 0],
    [4, 1.5, 1],
  ])("refuse counts that cannot be: %i samples, %d passes, k %i", (samples, passes, k) => {
    expect(() => passAtK(samples, passes, k)).toThrow(RangeError);
    expect(() => passHatK(samples, passes, k)).toThrow(RangeError);
  });
});
