import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toScore, total } from "./score.ts";

describe("toScore", () => {
  it("accepts numbers, booleans and objects with a reward or a score", () => {
    expect(toScore(0.5, "r")).toBe(0.5);
    expect(toScore(true, "r")).toBe(1);
    expect(toScore(false, "r")).toBe(0);
    expect(toScore({ reward: 2, components: {} }, "r")).toBe(2);
    expect(toScore({ status: "success", score: 1.0 }, "r")).toBe(1);
  });

  it("never converts another value to a number", () => {
    const none = fc.oneof(
      fc.string(),
      fc.constantFrom(undefined, null, Number.NaN, Number.POSITIVE_INFINITY, 1n, Symbol("x"), () => 1),
      fc.array(fc.integer()),
      fc.constant({}),
    );
    fc.assert(
      fc.property(none, (value) => {
        expect(() => toScore(value, "r")).toThrow(/reward 'r' returned/);
      }),
    );
  });
});

describe("total", () => {
  it("weighs each component and keeps it by name", () => {
    const parts = [
      { name: "done", weight: 0.75, score: 1 },
      { name: "brief", weight: 0.25, score: 0 },
    ];
    expect(total(parts)).toEqual({ reward: 0.75, components: { done: 1, brief: 0 }, weights: { done: 0.75, brief: 0.25 } });
  });
});
