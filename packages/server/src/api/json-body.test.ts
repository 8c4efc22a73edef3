import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson } from "./json-body.ts";

describe("parseJson", () => {
  it("reads what JSON.parse reads", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("refuses what is nested too deeply, and only that", () => {
    const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${"}]".repeat(depth / 2)}`;
    expect(parseJson(nested(1_000))).toBeDefined();
    expect(() => parseJson(nested(1_002))).toThrow("nested deeper than 1000 levels");
    expect(() => parseJson("[".repeat(1_000_000))).toThrow("nested deeper");
  });

  it("counts no brackets inside of strings", () => {
    for (const text of ["[".repeat(5_000), `\\"${"{".repeat(5_000)}`, "\\\\"])
      expect(parseJson(JSON.stringify([text, "]"]))).toEqual([text, "]"]);
  });
});
