import { floatRepr } from "@aenv/benchmark";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatFixed, nearestDouble, round, roundFloat } from "./numbers.ts";
import { float, type PyFloat, toInt } from "./values/values.ts";

const doubles = fc.double({ noNaN: true });

describe("the repr of a float", () => {
  it.each([
    [0, "0.0"],
    [-0, "-0.0"],
    [100, "100.0"],
    [0.1 + 0.2, "0.30000000000000004"],
    [1e15, "1000000000000000.0"],
    [1e16, "1e+16"],
    [0.0001, "0.0001"],
    [0.00001, "1e-05"],
    [1.5e-7, "1.5e-07"],
    [1e100, "1e+100"],
    [5e-324, "5e-324"],
    [Number.NaN, "nan"],
    [Number.NEGATIVE_INFINITY, "-inf"],
  ])("of %d is %s", (value, text) => expect(floatRepr(value)).toBe(text));

  it("parses to the same double", () => {
    fc.assert(fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => Object.is(Number(floatRepr(value)), value)));
  });
});

describe("rounding", () => {
  it.each([
    [0.125, 0.12],
    [0.375, 0.38],
    [2.675, 2.67],
    [-0.001, -0],
    [1e300, 1e300],
  ])("%d to two decimals is %d: half to even, on the exact value", (value, rounded) => expect(roundFloat(value, 2)).toBe(rounded));

  it("without digits gives an int, half to even", () => {
    expect([0.5, 1.5, 2.5, -0.5].map((value) => round(float(value)))).toEqual([0, 2, 2, 0]);
    expect(round(float(1e20))).toBe(100000000000000000000n);
  });

  it("keeps an int an int and a bool an int", () => expect([round(7, 2), round(true, 2)]).toEqual([7, 1]));

  it("refuses text", () => expect(() => round("1", 2)).toThrow("type str doesn't define __round__ method"));

  it("agrees with fixed notation", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: -1e9, max: 1e9 }), (value) => {
        expect(Number(formatFixed(float(value)))).toBe(roundFloat(value, 2));
      }),
    );
  });
});

describe("fixed notation", () => {
  it.each([
    [float(-0.001), false, "-0.00"],
    [float(1234567.891), true, "1,234,567.89"],
    [float(1e22), false, "10000000000000000000000.00"],
    [true, false, "1.00"],
  ])("of %o is %s", (value, grouping, text) => expect(formatFixed(value as PyFloat, 2, grouping as boolean)).toBe(text));

  it("raises Python's errors", () => {
    expect(() => formatFixed("x")).toThrow("Unknown format code 'f' for object of type 'str'");
    expect(() => formatFixed(null)).toThrow("unsupported format string passed to NoneType.__format__");
  });
});

it("the double nearest to a quotient of ints is what division gives where that is exact", () => {
  fc.assert(
    fc.property(
      fc.maxSafeInteger(),
      fc.maxSafeInteger().filter((n) => n !== 0),
      (a, b) => {
        expect(nearestDouble(BigInt(a), BigInt(b)) + 0).toBe(a / b + 0);
      },
    ),
  );
  fc.assert(fc.property(doubles.filter(Number.isInteger), (value) => nearestDouble(BigInt(value), 1n) === value));
});

it("an int has one form: a number while it is exact, else a bigint", () => {
  expect([toInt(5n), toInt(-0), toInt(2 ** 53), toInt(2n ** 53n - 1n)]).toEqual([5, 0, 9007199254740992n, 9007199254740991]);
});
