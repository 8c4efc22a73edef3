import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readRange } from "./byte-range.ts";

describe("the range of a file", () => {
  it.each([
    [undefined, { offset: 0, length: 10 }],
    ["bytes=2-4", { offset: 2, length: 3 }],
    ["bytes=7-", { offset: 7, length: 3 }],
    ["bytes=-4", { offset: 6, length: 4 }],
    ["bytes=8-99", { offset: 8, length: 2 }],
    ["bytes=10-", null],
    ["bytes=5-4", null],
    ["bytes=-0", null],
    ["bytes=0-1,3-4", { offset: 0, length: 10 }],
    ["lines=1-2", { offset: 0, length: 10 }],
  ])("of ten bytes for %s is %j", (header, expected) => {
    expect(readRange(header, 10)).toEqual(expected);
  });

  it("is always inside of the file", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.nat(), fc.integer({ min: 1 }), (text, first, last, size) => {
        for (const header of [text, `bytes=${first}-${last}`, `bytes=-${last}`, `bytes=${first}-`]) {
          const part = readRange(header, size);
          if (part !== null) expect(part.offset >= 0 && part.length > 0 && part.offset + part.length <= size).toBe(true);
        }
      }),
    );
  });
});
