import fc from "fast-check";
import { expect, it } from "vitest";
import { plain } from "./plain.ts";

it("keeps lines and tabs of foreign text, and no other control character", () => {
  expect(plain("a\tb\nc")).toBe("a\tb\nc");
  expect(plain("\x1b[31mred\x1b[0m \x1b]0;title\x07")).not.toMatch(/\p{Cc}/u);
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => !/\p{Cc}/u.test(plain(text).replace(/[\n\t]/g, ""))));
});
