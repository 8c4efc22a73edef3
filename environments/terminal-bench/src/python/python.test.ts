import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fnmatch } from "./fnmatch.ts";
import { isIsoDateTime } from "./isoformat.ts";
import { floatText, parseFloatText } from "./numbers.ts";
import { compareText, firstWord, isDigits, splitLines, strip } from "./text.ts";
import { compareVersions, parseVersion } from "./version.ts";

describe("text", () => {
  it("has Python's spaces, without the byte order mark", () => {
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

  it("is ordered by code point", () => {
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

  it("has digits beyond the decimal ones", () => {
    expect(["12", "²", "٣", "1a", ""].map(isDigits)).toEqual([true, true, true, false, false]);
  });
});

describe("numbers", () => {
  it("are read as Python's float reads them", () => {
    expect(["1_000", " .5\n", "1e3", "-INF", "١٢", "\xa01"].map(parseFloatText)).toEqual([
      1000,
      0.5,
      1000,
      Number.NEGATIVE_INFINITY,
      12,
      1,
    ]);
    expect(parseFloatText("nan")).toBeNaN();
    for (const text of ["", "0x1", "1__0", "1,5", "true", "\x1c1", "\ufeff1", "1 2", "²"]) expect(parseFloatText(text), text).toBeNull();
  });

  it("are printed and read back without a change", () => {
    fc.assert(fc.property(fc.double({ noNaN: true }), (value) => Object.is(parseFloatText(floatText(value)), value)));
  });

  it("are printed as Python prints floats", () => {
    expect([1, 0.25, -0, 1e16, 1e15, 1e-5, 0.0001, 1.5e300, 123456.5].map(floatText)).toEqual([
      "1.0",
      "0.25",
      "-0.0",
      "1e+16",
      "1000000000000000.0",
      "1e-05",
      "0.0001",
      "1.5e+300",
      "123456.5",
    ]);
  });
});

describe("versions", () => {
  const sorted = [
    "1.0.dev1",
    "1.0a1.dev1",
    "1.0a1",
    "1.0b2",
    "1.0rc1",
    "1.0",
    "1.0+a",
    "1.0+1",
    "1.0.post1.dev1",
    "1.0.post1",
    "1.1",
    "1!0.1",
  ];

  it("are ordered as Python's packages are", () => {
    const parsed = sorted.map((text) => parseVersion(text) ?? expect.unreachable(text));
    for (const [i, a] of parsed.entries()) {
      for (const [j, b] of parsed.entries())
        expect(Math.sign(compareVersions(a, b)), `${sorted[i]} and ${sorted[j]}`).toBe(Math.sign(i - j));
    }
  });

  it("ignore trailing zeros", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }), (release) => {
        const [a, b] = [parseVersion(release.join(".")), parseVersion([...release, 0].join("."))];
        return a !== null && b !== null && compareVersions(a, b) === 0;
      }),
    );
  });
});

describe("globs", () => {
  it("match any text with a star, also slashes", () => {
    fc.assert(fc.property(fc.string(), (text) => fnmatch(text, "*")));
    expect(fnmatch("org/name", "org*")).toBe(true);
    expect(fnmatch("Name", "name")).toBe(false);
  });

  it("have classes", () => {
    expect(["a1", "b1", "]1", "-1"].map((name) => fnmatch(name, "[!a]1"))).toEqual([false, true, true, true]);
    expect([fnmatch("]", "[]]"), fnmatch("[a", "[a"), fnmatch("b", "[c-a]"), fnmatch("^", "[^]")]).toEqual([true, true, false, true]);
  });

  it("match a literal text that has no special characters", () => {
    fc.assert(fc.property(fc.stringMatching(/^[a-z./+(){}^$|\\-]*$/), (text) => fnmatch(text, text)));
  });
});

describe("times of ISO 8601", () => {
  it("include every time that JavaScript writes", () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true, min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T00:00:00Z") }), (date) =>
        isIsoDateTime(date.toISOString()),
      ),
    );
  });

  it("are read in their other forms", () => {
    for (const text of ["2026-01-02", "20260102T0304", "2026-W01-1", "2026-01-02 03", "2026-01-02T03:04:05,5+01:30"])
      expect(isIsoDateTime(text), text).toBe(true);
    for (const text of ["2026-02-30", "2026-W54-1", "2026-01-02T24:00", "yesterday", "2026-01-02T", "2026-01-02T03:04:05z"]) {
      expect(isIsoDateTime(text), text).toBe(false);
    }
  });
});
