import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PyError } from "./errors.ts";
import { floatRepr, isDigits, isZero, parseFloatText, toFloat } from "./numbers.ts";

describe("numbers", () => {
  it("are read as by float()", () => {
    const cases = { " 3.5\n": 3.5, "1_0": 10, ".5": 0.5, "5.": 5, "1e2": 100, "-iNf": Number.NEGATIVE_INFINITY, "٣": 3, "𝟙.𝟗": 1.9 };
    for (const [text, value] of Object.entries(cases)) expect(toFloat(text)).toBe(value);
    expect(toFloat("nan")).toBeNaN();
  });

  it.each(["", "9.5.1", "abc", "1__0", "_1", "1_", "0x1", "1e", "- 1", null, 3])("raise for %j", (text) => {
    expect(() => toFloat(text)).toThrow(PyError);
  });

  it("are zero in any script", () => {
    expect(["0", "-0", "000", "٠", "𝟘", "1", "-٣", "0𝟡"].map(isZero)).toEqual([true, true, true, true, true, false, false, false]);
    expect(() => isZero("0".repeat(4301))).toThrow("too long");
  });

  it("are read as Python's float reads them, or are null", () => {
    expect(["1_000", " .5\n", "1e3", "-INF", "١٢", "\xa01"].map(parseFloatText)).toEqual([
      1000,
      0.5,
      1000,
      Number.NEGATIVE_INFINITY,
      12,
      1,
    ]);
    expect(parseFloatText("nan")).toBeNaN();
    for (const text of ["", "0x1", "1__0", "1,5", "true", "\x1c1", "\ufeff1", "1 2", "²"]) expect(parseFloatText(text), text).toBeNull();
  });

  it("are printed and read back without a change", () => {
    fc.assert(fc.property(fc.double({ noNaN: true }), (value) => Object.is(parseFloatText(floatRepr(value)), value)));
  });

  it("are printed as Python prints floats", () => {
    expect([1, 0.25, -0, 1e16, 1e15, 1e-5, 0.0001, 1.5e300, 123456.5].map(floatRepr)).toEqual([
      "1.0",
      "0.25",
      "-0.0",
      "1e+16",
      "1000000000000000.0",
      "1e-05",
      "0.0001",
      "1.5e+300",
      "123456.5",
    ]);
  });

  it("has digits beyond the decimal ones", () => {
    expect(["12", "²", "٣", "1a", ""].map(isDigits)).toEqual([true, true, true, false, false]);
  });
});
