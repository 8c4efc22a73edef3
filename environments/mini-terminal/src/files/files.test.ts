import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linesOf } from "./lines.ts";
import { pathIn } from "./paths.ts";
import { replaceText } from "./replace.ts";

const text = fc.string({ unit: fc.constantFrom("a", "b", "\n", "\r", "é") });

describe("the lines of a text", () => {
  it("are all of the text, if they are read in parts one after the other", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 }), (whole, count, maxCharacters) => {
        let read = "";
        for (let at = 1; ; ) {
          const { content, last_line, total_lines } = linesOf(whole, at, count, maxCharacters);
          read += content;
          if (last_line === total_lines) break;
          at = last_line + 1;
        }
        expect(read).toBe(whole);
      }),
    );
  });

  it("have numbers, and keep their line breaks", () => {
    expect(linesOf("a\nb\nc", 2, 5, 100)).toEqual({ content: "b\nc", first_line: 2, last_line: 3, total_lines: 3 });
    expect(linesOf("", 1, 5, 100)).toEqual({ content: "", first_line: 0, last_line: 0, total_lines: 0 });
    expect(() => linesOf("a\n", 2, 1, 100)).toThrow("line 2 does not exist; the file has 1 lines");
  });
});

describe("a replacement", () => {
  const replace = (whole: string, oldText: string, newText: string, isEverywhere = false) =>
    replaceText(whole, { oldText, newText, isEverywhere });

  it("changes the one place and nothing else, and inserts the new text as it is", () => {
    fc.assert(
      fc.property(text, fc.string(), text, (before, newText, after) => {
        expect(replace(`${before}OLD${after}`, "OLD", newText)).toEqual({ text: `${before}${newText}${after}`, count: 1 });
      }),
    );
  });

  it("refuses a text that does not occur, or occurs more than once", () => {
    expect(() => replace("abc", "x", "y")).toThrow("does not occur");
    expect(() => replace("a a a", "a", "b")).toThrow("occurs 3 times");
    expect(replace("a a a", "a", "b", true)).toEqual({ text: "b b b", count: 3 });
  });
});

describe("a path", () => {
  it("is relative to the working folder, or absolute", () => {
    expect(pathIn("/work", "a/../b")).toBe("/work/b");
    expect(pathIn("/work", "/etc/hosts")).toBe("/etc/hosts");
    expect(() => pathIn("/work", "a\0b")).toThrow("NUL");
  });
});
