import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "./canonical-json.ts";

describe("canonicalJson", () => {
  it("returns the same text for any order of keys, and loses nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(reversed(value))).toBe(text);
      }),
    );
  });

  it("refuses a value that is nested too deeply", () => {
    const deep = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`);
    expect(() => canonicalJson(deep)).toThrow("nested deeper than 100 levels");
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const copy = {};
  for (const [key, field] of Object.entries(value).reverse()) {
    Object.defineProperty(copy, key, { value: reversed(field), enumerable: true });
  }
  return copy;
}
