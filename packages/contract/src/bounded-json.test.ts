import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonLimits, parseBoundedJson } from "./bounded-json.ts";

const small: JsonLimits = { maxDepth: 5, maxValues: 20 };

describe("parseBoundedJson", () => {
  it("returns what JSON.parse returns for any value within its limits", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.boolean(), (value, isIndented) => {
        const text = JSON.stringify(value, null, isIndented ? 2 : 0);
        expect(parseBoundedJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("throws exactly for values deeper than its limit, whatever their strings contain", () => {
    fc.assert(
      fc.property(fc.nat(12), fc.string(), (levels, leaf) => {
        const text = "[".repeat(levels) + JSON.stringify(leaf) + "]".repeat(levels);
        const parse = () => parseBoundedJson(text, small);
        if (levels > 5) expect(parse).toThrow("its JSON is nested deeper than 5 levels");
        else expect(parse()).toEqual(JSON.parse(text));
      }),
    );
  });

  it("throws for more values than its limit", () => {
    expect(() => parseBoundedJson(JSON.stringify(Array(30).fill(0)), small)).toThrow("its JSON has more than 20 values");
    expect(parseBoundedJson(JSON.stringify(Array(20).fill(0)), small)).toHaveLength(20);
  });

  it("refuses 100,000 levels with the usual limits, and leaves malformed text to JSON.parse", () => {
    expect(() => parseBoundedJson("[".repeat(100_000))).toThrow("deeper than 200 levels");
    expect(() => parseBoundedJson(`"${"\\".repeat(501)}"`)).toThrow(SyntaxError);
    expect(() => parseBoundedJson(`{"a": "${"x".repeat(300)}`)).toThrow(SyntaxError);
  });
});
