import { canonicalJson } from "@aenv/contract";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { differences } from "./difference.ts";

/** Values as they come from the wire. */
const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)));

describe("the differences of two JSON values", () => {
  it("are none exactly if both are the same JSON", () => {
    fc.assert(
      fc.property(json, json, (one, other) => {
        expect(differences(one, structuredClone(one))).toEqual([]);
        expect(differences(one, other).length === 0).toBe(canonicalJson(one) === canonicalJson(other));
      }),
    );
  });

  it("are the same from the other side", () => {
    fc.assert(
      fc.property(json, json, (one, other) => {
        const swapped = differences(other, one, 1_000).map(({ path, expected, actual }) => ({ path, expected: actual, actual: expected }));
        const byPath = (found: typeof swapped) => found.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map((each) => canonicalJson(each));
        expect(byPath(swapped).sort()).toEqual(byPath(differences(one, other, 1_000)).sort());
      }),
    );
  });

  it("are at most so many", () => {
    fc.assert(
      fc.property(json, json, fc.integer({ min: 0, max: 5 }), (one, other, most) => {
        expect(differences(one, other, most).length).toBeLessThanOrEqual(most);
        expect(differences(one, other, most)).toEqual(differences(one, other, 1_000).slice(0, most));
      }),
    );
  });

  it("name the place, and what each side has there", () => {
    const expected = { content: [{ type: "text", text: "a" }, 1], isError: false };
    const actual = { content: [{ type: "text", text: "b" }], isError: false, extra: null };
    expect(differences(expected, actual)).toEqual([
      { path: "content[0].text", expected: "a", actual: "b" },
      { path: "content[1]", expected: 1, actual: undefined },
      { path: "extra", expected: undefined, actual: null },
    ]);
    expect(differences([], {})).toEqual([{ path: "", expected: [], actual: {} }]);
  });

  it.each(["__proto__", "toString", "constructor"])("see a field that is called %s", (name) => {
    const value: unknown = JSON.parse(`{"${name}":{}}`);
    expect(differences(value, {})).toEqual([{ path: name, expected: {}, actual: undefined }]);
  });
});
