import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { laxBool, laxFloat, laxInt } from "./pydantic.ts";

describe("a text, as pydantic takes it in its lax mode,", () => {
  it("is a whole number with a sign, single underscores and zeros after the point", () => {
    expect([" 3\n", "+3", "007", "1_000", "3.0", "-2.00", "\u20033"].map(laxInt)).toEqual([3n, 3n, 7n, 1000n, 3n, -2n, 3n]);
    for (const text of ["", "1.", "1.5", "1e3", "None", "1__0", "_1", "٣", "\x1c1"]) expect(laxInt(text), text).toBeNull();
  });

  it("is too long for a whole number with more than 4300 digits", () => {
    expect([laxInt("1".repeat(4301)), laxInt(`-${"1".repeat(4300)}`)]).toEqual(["too long", -BigInt("1".repeat(4300))]);
  });

  it("is a number with a point, an exponent or a name", () => {
    expect([" .5", "5.", "1_0.2_5e1_0", "-Infinity", "INF"].map(laxFloat)).toEqual([
      0.5,
      5,
      10.25e10,
      Number.NEGATIVE_INFINITY,
      Number.POSITIVE_INFINITY,
    ]);
    expect(laxFloat("+nan")).toBeNaN();
    for (const text of ["", ".", "e5", "1e", "0x1", "1__0", "infinit", "1 2"]) expect(laxFloat(text), text).toBeNull();
    fc.assert(fc.property(fc.double({ noNaN: true }), (value) => Object.is(laxFloat(String(value)), value + 0)));
  });

  it("is true or false by a word in any case", () => {
    expect(["1", "YES", "t", "On"].map(laxBool)).toEqual([true, true, true, true]);
    expect(["0", "no", "F", "off"].map(laxBool)).toEqual([false, false, false, false]);
    expect(["", "2", " yes"].map(laxBool)).toEqual([null, null, null]);
  });
});
