import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PyError } from "./errors.ts";
import { writeJson } from "./json-text.ts";
import { type Json, readJson } from "./plain-json.ts";

function plain(value: Json): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, member]) => [key, plain(member)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

describe("JSON", () => {
  it("is read as by JavaScript", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(plain(readJson(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("keeps the order of all keys", () => {
    expect([...(readJson('{"b": 1, "10": 2, "2": {"1": 3}}') as ReadonlyMap<string, Json>).keys()]).toEqual(["b", "10", "2"]);
    expect(plain(readJson('{"1": "a\\u00e9\\n", "2": [true, false, null, -1.5e3]}'))).toEqual({ 1: "aé\n", 2: [true, false, null, -1500] });
  });

  it("may have NaN and Infinity", () => {
    expect(readJson("[NaN, -Infinity, Infinity]")).toEqual([Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]);
  });

  it.each(["", "{", "[1,]", '{"1": 1,}', '"a\nb"', "01", "1.", "nul", "[1] x", '"\\x"', '{"1" 1}', "\ufeff1", "'a'"])(
    "raises for %j",
    (text) => {
      expect(() => readJson(text)).toThrow(PyError);
    },
  );

  it("is written in ASCII, with the order of a map", () => {
    const value = new Map<string, unknown>([
      ["9", ["é😀\x7f\n", 1, true, null]],
      ["10", { a: [], b: {} }],
    ]);
    expect(writeJson(value, 2)).toBe(
      '{\n  "9": [\n    "\\u00e9\\ud83d\\ude00\\u007f\\n",\n    1,\n    true,\n    null\n  ],\n  "10": {\n    "a": [],\n    "b": {}\n  }\n}',
    );
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        expect(JSON.parse(writeJson(json, 4))).toEqual(JSON.parse(JSON.stringify(json)));
      }),
    );
  });
});
