import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fnmatch } from "./fnmatch.ts";
import { isIsoDateTime } from "./isoformat.ts";
import { compareVersions, parseVersion } from "./version.ts";

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
