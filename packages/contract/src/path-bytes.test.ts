import fc from "fast-check";
import { expect, it } from "vitest";
import { decodePath, encodePath } from "./path-bytes.ts";

it("any bytes of a path are the same after they were a text, also in JSON", () => {
  const bytes = fc.oneof(
    fc.uint8Array(),
    fc.array(fc.constantFrom(0x61, 0xc3, 0xa9, 0xed, 0xb2, 0x80, 0xf0, 0x9f, 0xff)).map((all) => Uint8Array.from(all)),
  );
  fc.assert(fc.property(bytes, (one) => void expect(encodePath(JSON.parse(JSON.stringify(decodePath(one))))).toEqual(one)));
});

it("a path in UTF-8 is its text, and of another one only the bytes that are not are escaped", () => {
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), (text) => void expect(decodePath(encodePath(text))).toBe(text)));
  expect(decodePath(Uint8Array.of(0x61, 0xff, 0xc3, 0xa9, 0xc3))).toBe("a\udcffé\udcc3");
});
