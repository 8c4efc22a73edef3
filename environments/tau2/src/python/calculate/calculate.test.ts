import { describe, expect, it } from "vitest";
import { Dict, type PyValue } from "../values/values.ts";
import { calculate } from "./calculate.ts";

describe("calculate", () => {
  it.each([
    ["2 + 2", "4.0"],
    ["-2**2", "-4.0"],
    ["2**-1", "0.5"],
    ["2**3**2", "512.0"],
    ["-7 // 2", "-4.0"],
    ["0/-72", "-0.0"],
    ["7.5 // -2", "-4.0"],
    ["007.5", "7.5"],
    ["99999999999999999999 - 99999999999999999998", "1.0"],
    ["10**20 * 10", "1e+21"],
    ["1e", null],
  ])("computes %s as %s", (expression, result) => {
    if (result === null) expect(() => calculate(expression)).toThrow("Invalid characters in expression");
    else expect(calculate(expression)).toBe(result);
  });

  it.each([
    ["", "invalid syntax (<string>, line 0)"],
    ["1 2", "invalid syntax (<string>, line 1)"],
    ["(1 2)", "invalid syntax. Perhaps you forgot a comma? (<string>, line 1)"],
    ["(1", "'(' was never closed (<string>, line 1)"],
    ["1 2)", "unmatched ')' (<string>, line 1)"],
    ["1 + 07", "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers (<string>, line 1)"],
    ["1/0", "division by zero"],
    ["1.0/0", "float division by zero"],
    ["0**-1", "0.0 cannot be raised to a negative power"],
    ["10.0**400", "(34, 'Numerical result out of range')"],
    ["2(3)", "'int' object is not callable"],
    ["()", "float() argument must be a string or a real number, not 'tuple'"],
    ["() + 1", 'can only concatenate tuple (not "int") to tuple'],
    ["(-8) ** .5", "float() argument must be a string or a real number, not 'complex'"],
  ])("refuses %j", (expression, text) => expect(() => calculate(expression)).toThrow(text));

  it.each<[PyValue, string]>([
    [5, "'int' object is not iterable"],
    [["1", "+"], "eval() arg 1 must be a string, bytes or code object"],
    [[1], "'in <string>' requires string as left operand, not int"],
    [new Dict(), "eval() arg 1 must be a string, bytes or code object"],
  ])("refuses a value that is not a string: %o", (expression, text) => expect(() => calculate(expression)).toThrow(text));

  it("refuses a result that would take hours", () => expect(() => calculate("9**9**9")).toThrow("too many digits"));
});
