import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, digestOf, hexOf, parseDigest } from "./digest.ts";

describe("canonicalJson", () => {
  it("gives the same text whatever the order of keys, and loses nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(reversed(value))).toBe(text);
      }),
    );
  });

  it("refuses a value that is nested without end", () => {
    const deep = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`);
    expect(() => canonicalJson(deep)).toThrow("nested deeper than 100 levels");
  });
});

describe("a digest", () => {
  it("is sha256 in lower-case hex and nothing else", () => {
    expect(hexOf(digestOf("x"))).toMatch(/^[0-9a-f]{64}$/);
    for (const text of ["", "sha256:", `sha256:${"A".repeat(64)}`, `md5:${"a".repeat(64)}`, `sha256:../${"a".repeat(61)}`]) {
      expect(() => parseDigest(text)).toThrow("is no digest");
    }
    expect(() => parseDigest(`sha256:${"a".repeat(64)}\n`)).toThrow("is no digest");
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
