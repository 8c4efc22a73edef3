import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeLenient, decodeStrict, universalNewlines } from "./bytes.ts";
import { type Json, readJson } from "./json-reader.ts";
import { writeJson } from "./json-writer.ts";
import { isZero, parseFloatText } from "./numbers.ts";
import { RaisedError } from "./raised.ts";
import { beforeLast, compareText, indentOf, lstrip, rstrip, strip, words } from "./text.ts";

function plain(value: Json): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, member]) => [key, plain(member)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

describe("text", () => {
  it("is stripped of Python's whitespace only", () => {
    expect(strip("\x1c\u3000 a b\x85\n")).toBe("a b");
    expect(strip("\ufeffa")).toBe("\ufeffa");
    expect([lstrip(" a "), rstrip(" a "), indentOf("\t\u2003x")]).toEqual(["a ", " a", 2]);
  });

  it("is split into words, up to a number of them", () => {
    expect(words(" a\x1fb  c\u2028")).toEqual(["a", "b", "c"]);
    expect(words("a b c", 2)).toEqual(["a", "b"]);
    expect(words(" \n")).toEqual([]);
    expect(beforeLast("a-b-c", "-")).toBe("a-b");
  });

  it("is sorted by code point", () => {
    expect(["😀", "\uffee", "a", "ab", ""].sort(compareText)).toEqual(["", "a", "ab", "\uffee", "😀"]);
    const text = fc.string({ unit: fc.constantFrom("a", "é", "\ud7ff", "\ue000", "\uffee", "😀", "𝟘") });
    const points = (value: string): number[] => [...value].map((char) => char.codePointAt(0) ?? 0);
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [left, right] = [points(a), points(b)];
        const at = left.findIndex((point, i) => point !== right[i]);
        const wanted = at < 0 || at >= right.length ? left.length - right.length : (left[at] ?? 0) - (right[at] ?? 0);
        expect(Math.sign(compareText(a, b))).toBe(Math.sign(wanted));
      }),
    );
  });
});

describe("bytes", () => {
  it("that are not UTF-8 raise, or are replaced", () => {
    const bytes = new Uint8Array([0x61, 0xff, 0x62]);
    expect(() => decodeStrict(bytes, "the log")).toThrow("the log is not valid UTF-8");
    expect(decodeLenient(bytes)).toBe("a\ufffdb");
  });

  it("keep a byte order mark", () => {
    const bytes = new TextEncoder().encode("\ufeffa");
    expect([decodeStrict(bytes, ""), decodeLenient(bytes)]).toEqual(["\ufeffa", "\ufeffa"]);
  });

  it("have one kind of line end after reading", () => {
    expect(universalNewlines("a\r\nb\rc\n\r")).toBe("a\nb\nc\n\n");
  });
});

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
      expect(() => readJson(text)).toThrow(RaisedError);
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

describe("numbers", () => {
  it("are read as by float()", () => {
    const cases = { " 3.5\n": 3.5, "1_0": 10, ".5": 0.5, "5.": 5, "1e2": 100, "-iNf": Number.NEGATIVE_INFINITY, "٣": 3, "𝟙.𝟗": 1.9 };
    for (const [text, value] of Object.entries(cases)) expect(parseFloatText(text)).toBe(value);
    expect(parseFloatText("nan")).toBeNaN();
  });

  it.each(["", "9.5.1", "abc", "1__0", "_1", "1_", "0x1", "1e", "- 1", null, 3])("raise for %j", (text) => {
    expect(() => parseFloatText(text)).toThrow(RaisedError);
  });

  it("are zero in any script", () => {
    expect(["0", "-0", "000", "٠", "𝟘", "1", "-٣", "0𝟡"].map(isZero)).toEqual([true, true, true, true, true, false, false, false]);
    expect(() => isZero("0".repeat(4301))).toThrow("too long");
  });
});
