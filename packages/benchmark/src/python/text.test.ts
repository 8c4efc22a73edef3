import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeLenient, decodeStrict } from "./bytes.ts";
import { splitLines, universalNewlines } from "./lines.ts";
import { beforeLast, compareText, firstWord, indentOf, lstrip, rstrip, strip, words } from "./text.ts";

describe("text", () => {
  it("is stripped of Python's whitespace only", () => {
    expect(strip("\x1c\u3000 a b\x85\n")).toBe("a b");
    expect(strip("\ufeffa")).toBe("\ufeffa");
    expect([lstrip(" a "), rstrip(" a "), indentOf("\t\u2003x")]).toEqual(["a ", " a", 2]);
  });

  it("is split into words, up to a number of them", () => {
    expect(words(" a\x1fb  c\u2028")).toEqual(["a", "b", "c"]);
    expect(words("a b c", 2)).toEqual(["a", "b"]);
    expect(words(" \n")).toEqual([]);
    expect(beforeLast("a-b-c", "-")).toBe("a-b");
  });

  it("is sorted by code point", () => {
    expect(["😀", "\uffee", "a", "ab", ""].sort(compareText)).toEqual(["", "a", "ab", "\uffee", "😀"]);
    const text = fc.string({ unit: fc.constantFrom("a", "é", "\ud7ff", "\ue000", "\uffee", "😀", "𝟘") });
    const points = (value: string): number[] => [...value].map((char) => char.codePointAt(0) ?? 0);
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [left, right] = [points(a), points(b)];
        const at = left.findIndex((point, i) => point !== right[i]);
        const wanted = at < 0 || at >= right.length ? left.length - right.length : (left[at] ?? 0) - (right[at] ?? 0);
        expect(Math.sign(compareText(a, b))).toBe(Math.sign(wanted));
      }),
    );
  });

  it("has Python's spaces inside, without the byte order mark", () => {
    expect(strip("\x1c\x85 \u3000a\xa0\n")).toBe("a");
    expect(strip("\ufeffa")).toBe("\ufeffa");
  });

  it("is split into lines at everything that ends one", () => {
    expect(splitLines("a\r\nb\vc\x1dd\u2028e\n")).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("has a first word and a rest", () => {
    expect(firstWord(" a  b c ")).toEqual({ word: "a", rest: "b c " });
    expect(firstWord("a ")).toEqual({ word: "a", rest: null });
    expect(firstWord(" ")).toBeNull();
  });

  it("is ordered by code point, whatever it has", () => {
    expect(["\u{1f600}", "\uffee", "a"].sort(compareText)).toEqual(["a", "\uffee", "\u{1f600}"]);
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.string({ unit: "binary" }),
        (a, b) => Math.sign(compareText(a, b)) === -Math.sign(compareText(b, a)),
      ),
    );
    fc.assert(fc.property(fc.string(), fc.string(), (a, b) => compareText(a, a + b) <= 0));
  });
});

describe("bytes", () => {
  it("that are not UTF-8 raise, or are replaced", () => {
    const bytes = new Uint8Array([0x61, 0xff, 0x62]);
    expect(() => decodeStrict(bytes, "the log")).toThrow("the log is not valid UTF-8");
    expect(decodeLenient(bytes)).toBe("a\ufffdb");
  });

  it("keep a byte order mark", () => {
    const bytes = new TextEncoder().encode("\ufeffa");
    expect([decodeStrict(bytes, ""), decodeLenient(bytes)]).toEqual(["\ufeffa", "\ufeffa"]);
  });

  it("have one kind of line end after reading", () => {
    expect(universalNewlines("a\r\nb\rc\n\r")).toBe("a\nb\nc\n\n");
  });
});
