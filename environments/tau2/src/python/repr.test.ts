import { compareText, indent, strip } from "@aenv/benchmark";
import { describe, expect, it } from "vitest";
import { equals, isOrdered, lookup } from "./equality.ts";
import { int, text } from "./model/field-types.ts";
import { model } from "./model/model.ts";
import { repr, str } from "./repr.ts";
import { PyDate, PyDateTime } from "./values/datetime.ts";
import { enumeration } from "./values/enums.ts";
import { Dict, float, PyTuple, type PyValue } from "./values/values.ts";

const Level = enumeration("Level", { LOW: "low", HIGH: "high" });
const Point = model("Point", { x: int, name: text });

describe("repr and str", () => {
  it.each<[PyValue, string, string]>([
    [null, "None", "None"],
    [true, "True", "True"],
    ["it's", `"it's"`, "it's"],
    [`it's "x"`, `'it\\'s "x"'`, `it's "x"`],
    ["\n\t\u0000\u00a0\u200bé😀", "'\\n\\t\\x00\\xa0\\u200bé😀'", "\n\t\u0000\u00a0\u200bé😀"],
    [[1, float(2), "a"], "[1, 2.0, 'a']", "[1, 2.0, 'a']"],
    [new PyTuple([1]), "(1,)", "(1,)"],
    [Dict.of<PyValue>({ a: null, b: Level.LOW }), "{'a': None, 'b': <Level.LOW: 'low'>}", "{'a': None, 'b': <Level.LOW: 'low'>}"],
    [Level.HIGH, "<Level.HIGH: 'high'>", "Level.HIGH"],
    [new PyDate(2025, 2, 5), "datetime.date(2025, 2, 5)", "2025-02-05"],
    [new PyDateTime(new PyDate(2025, 2, 5), 3, 4), "datetime.datetime(2025, 2, 5, 3, 4)", "2025-02-05 03:04:00"],
    [Point.create({ x: 1, name: "a" }), "Point(x=1, name='a')", "x=1 name='a'"],
  ])("of %o are %s and %s", (value, asRepr, asStr) => {
    expect(repr(value)).toBe(asRepr);
    expect(str(value)).toBe(asStr);
  });
});

describe("equality", () => {
  it("treats 1, 1.0 and True as equal, and an enum member and its value", () => {
    expect(equals(1, float(1)) && equals(true, 1) && equals(float(0), false) && equals(Level.LOW, "low")).toBe(true);
    expect(equals(2n ** 60n, float(2 ** 60)) && equals([1, "a"], [float(1), "a"])).toBe(true);
  });

  it("distinguishes lists from tuples, and strings from numbers", () => {
    expect(equals([1], new PyTuple([1])) || equals("1", 1) || equals(null, false) || equals(float(Number.NaN), float(Number.NaN))).toBe(
      false,
    );
  });

  it("is used for dict lookups, which refuse unhashable keys", () => {
    const dict = new Dict<PyValue>([
      [1, "one"],
      [Level.LOW, "member"],
    ]);
    expect([lookup(dict, float(1)), lookup(dict, "low"), lookup(dict, "one")]).toEqual(["one", "member", undefined]);
    expect(() => lookup(dict, [1])).toThrow("unhashable type: 'list'");
  });

  it("orders numbers and strings, but not a number and a string", () => {
    expect(isOrdered(1, "<", float(1.5)) && isOrdered("a", "<=", "b") && !isOrdered(float(Number.NaN), ">=", 0)).toBe(true);
    expect(() => isOrdered("a", "<=", 1)).toThrow("'<=' not supported between instances of 'str' and 'int'");
  });
});

describe("text", () => {
  it("is indented line by line, but not where a line is blank", () => {
    expect(indent("a\n\n \nb\r\nc\u2028d", "\t")).toBe("\ta\n\n \n\tb\r\n\tc\u2028\td");
  });

  it("is stripped of Python's whitespace only", () => expect(strip("\u001f \u0085a\ufeff\u00a0")).toBe("a\ufeff"));

  it("sorts by code point", () => expect(["😀", "\ue000", "a"].sort(compareText)).toEqual(["a", "\ue000", "😀"]));
});
