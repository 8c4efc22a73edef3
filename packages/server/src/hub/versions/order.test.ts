import fc from "fast-check";
import semver from "semver";
import { describe, expect, it } from "vitest";
import { byNewest, highestInRange, latest } from "./order.ts";

const of = (...versions: string[]) => versions.map((version, at) => ({ version, createdAt: new Date(at * 1_000).toISOString() }));

describe("the order of versions", () => {
  it("is by semver, newest first, and by time for other versions", () => {
    const sorted = of("nightly", "1.10.0", "1.9.0", "2.0.0-rc.1", "main", "1.10.0-beta").sort(byNewest);
    expect(sorted.map((one) => one.version)).toEqual(["2.0.0-rc.1", "1.10.0", "1.10.0-beta", "1.9.0", "main", "nightly"]);
  });

  it("does not depend on the order of the input", () => {
    const version = fc.oneof(
      fc
        .tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.constantFrom("", "-rc.1", "-alpha", "+b1", "+b2"))
        .map(([a, b, c, d]) => `${a}.${b}.${c}${d}`),
      fc.constantFrom("nightly", "main", "1.0", "x"),
    );
    fc.assert(
      fc.property(fc.uniqueArray(version, { minLength: 1 }), fc.infiniteStream(fc.nat()), (versions, random) => {
        const dated = of(...versions);
        const sorted = [...dated].sort(byNewest);
        const shuffled = dated.map((one) => ({ one, at: random.next().value as number })).sort((a, b) => a.at - b.at);
        expect(shuffled.map(({ one }) => one).sort(byNewest)).toEqual(sorted);
      }),
    );
  });
});

describe("latest", () => {
  it("is the highest stable version, not the youngest", () => {
    expect(latest(of("1.10.0", "2.0.0-rc.1", "1.9.0", "nightly"))?.version).toBe("1.10.0");
  });

  it("is a prerelease only if there is no stable version, and not semver only if there is nothing else", () => {
    expect(latest(of("nightly", "2.0.0-rc.2", "2.0.0-rc.10"))?.version).toBe("2.0.0-rc.10");
    expect(latest(of("nightly", "weekly"))?.version).toBe("weekly");
    expect(latest([])).toBeNull();
  });
});

describe("a range", () => {
  it("finds the highest version that matches", () => {
    const versions = of("1.1.9", "1.2.0", "1.9.3", "2.0.0", "1.9.4-rc.1", "nightly");
    const found = (range: string) => highestInRange(versions, range)?.version;
    expect(found("^1.2")).toBe("1.9.3");
    expect(found("~1.1")).toBe("1.1.9");
    expect(found("1")).toBe("1.9.3");
    expect(found(">=1 <1.5")).toBe("1.2.0");
    expect(found("*")).toBe("2.0.0");
    expect(found("^3")).toBeUndefined();
    expect(found("no range")).toBeUndefined();
  });

  it("matches a prerelease only if no stable version does", () => {
    expect(highestInRange(of("2.0.0-rc.1", "1.0.0"), "^2.0.0-0")?.version).toBe("2.0.0-rc.1");
    expect(highestInRange(of("2.1.0-rc.1", "1.0.0"), "^2")?.version).toBe("2.1.0-rc.1");
  });

  it("accepts any text without an error, and returns only matches", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (range) => {
        const found = highestInRange(of("1.0.0", "2.0.0-rc.1"), range);
        if (found !== null) expect(semver.satisfies(found.version, range, { includePrerelease: true })).toBe(true);
      }),
    );
  });
});
