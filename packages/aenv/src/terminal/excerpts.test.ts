import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { excerpts } from "./excerpts.ts";

describe("the excerpts of two texts", () => {
  it("are the texts where they fit into a line", () => {
    expect(excerpts("a die", "a coin")).toEqual(["a die", "a coin"]);
  });

  it("show where two long texts differ", () => {
    const long = "x".repeat(500);
    expect(excerpts(`${long}one${long}`, `${long}two${long}`)).toEqual([
      `…${"x".repeat(40)}one${"x".repeat(57)}…`,
      `…${"x".repeat(40)}two${"x".repeat(57)}…`,
    ]);
  });

  it("differ exactly if the texts do, and are short", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 400 });
    fc.assert(
      fc.property(text, text, text, (start, one, other) => {
        const [a, b] = excerpts(start + one, start + other);
        expect(a === b).toBe(one === other);
        expect(Math.max(a.length, b.length)).toBeLessThanOrEqual(102);
      }),
    );
  });
});
