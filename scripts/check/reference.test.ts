import { describe, expect, it } from "vitest";
import { readStalePages } from "./reference.ts";

describe("readStalePages", () => {
  it("names the page, the line and the command that fixes it", () => {
    expect(readStalePages("docs/reference/errors.md:12: should be '| a |'\nother output\n")).toEqual([
      { file: "docs/reference/errors.md", line: 12, message: "should be '| a |'; run: npm run reference" },
    ]);
  });
});
