import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { equals } from "../equality.ts";
import { PyDate, PyDateTime } from "../values/datetime.ts";
import { Dict, float, type PyFloat, PyTuple, type PyValue } from "../values/values.ts";
import { readJson } from "./reader.ts";
import { toJsonStr, writeJson } from "./writer.ts";

const values: fc.Arbitrary<PyValue> = fc.letrec<{ value: PyValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<PyValue>(null, true, false),
    fc.maxSafeInteger(),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 90n }),
    fc.double({ noNaN: true }).map(float),
    fc.string({ unit: "binary" }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(fc.string(), tie("value")), { maxLength: 4 }).map((entries) => new Dict(entries)),
  ),
})).value;

describe("reading", () => {
  it("keeps ints and floats apart", () => {
    expect(readJson("[2, 2.0, 1e2, -0, -0.0, 12345678901234567890]")).toEqual([
      2,
      float(2),
      float(100),
      0,
      float(-0),
      12345678901234567890n,
    ]);
  });

  it("keeps the order of keys that look like numbers, and the last value of a duplicate key in the first position", () => {
    expect([...(readJson('{"2": 1, "1": 2, "2": 3}') as Dict)]).toEqual([
      ["2", 3],
      ["1", 2],
    ]);
  });

  it("accepts NaN and the infinities", () => {
    expect((readJson("[NaN, Infinity, -Infinity]") as PyFloat[]).map(({ value }) => value)).toEqual([
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ]);
  });

  it.each([
    ["", "Expecting value: line 1 column 1 (char 0)"],
    ["[1,]", "Expecting value: line 1 column 4 (char 3)"],
    ["{'a': 1}", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"],
    ['{"a"\n 1}', "Expecting ':' delimiter: line 2 column 2 (char 6)"],
    ["[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)"],
    ['"a\nb"', "Invalid control character at: line 1 column 3 (char 2)"],
    ['"a', "Unterminated string starting at: line 1 column 1 (char 0)"],
    ["1 2", "Extra data: line 1 column 3 (char 2)"],
  ])("refuses %j as Python does", (text, message) => expect(() => readJson(text)).toThrow(message));
});

describe("writing", () => {
  it("is reversed by reading", () => {
    fc.assert(
      fc.property(values, (value) => {
        const back = readJson(writeJson(value));
        expect(equals(back, value)).toBe(true);
        expect(writeJson(back)).toBe(writeJson(value));
      }),
    );
  });

  it("is valid for JSON.parse", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(writeJson(readJson(text)))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("is ASCII, with DEL and higher characters escaped by UTF-16 unit", () => {
    expect(writeJson('"\\\n\u007fé😀')).toBe('"\\"\\\\\\n\\u007f\\u00e9\\ud83d\\ude00"');
  });

  it("sorts keys by code point at every level", () => {
    const value = readJson('{"b": {"z": 1, "a": 2}, "\ue000": 0, "😀": 0, "a": 1}');
    expect(writeJson(value, { sortKeys: true })).toBe('{"a": 1, "b": {"a": 2, "z": 1}, "\\ue000": 0, "\\ud83d\\ude00": 0}');
  });

  it("indents, and leaves empty containers on one line", () => {
    expect(writeJson(readJson('{"a": [1, {}], "b": []}'), { indent: 2 })).toBe('{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}');
  });
});

describe("a tool's result", () => {
  it.each<[PyValue, string]>([
    ["as it is", "as it is"],
    [true, '"True"'],
    [[1, float(2.5), null, new PyTuple(["x"])], '["1", "2.5", null, ["x"]]'],
    [new PyDateTime(new PyDate(2025, 2, 25), 12, 8), '"2025-02-25T12:08:00"'],
    [Dict.of<PyValue>({ a: 1, b: Dict.of({ c: false }) }), '{"a": "1", "b": {"c": "False"}}'],
  ])("%o is written as %s", (value, text) => expect(toJsonStr(value)).toBe(text));
});
