import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "./duration.ts";
import { isPlatformError } from "./errors.ts";

describe("parseDuration", () => {
  it.each([
    ["30m", 1_800_000],
    ["1h30m", 5_400_000],
    ["2h", 7_200_000],
    ["24h", 86_400_000],
    ["1d", 86_400_000],
    ["1d12h", 129_600_000],
    ["90s", 90_000],
    ["1.5h", 5_400_000],
    [".5s", 500],
    ["1.s", 1_000],
    ["250ms", 250],
    ["3us", 0.003],
    ["3µs", 0.003],
    ["3μs", 0.003],
    ["1000000ns", 1],
    ["1m1m", 120_000],
    ["0", 0],
    ["0s", 0],
    ["-0", 0],
    ["-30s", -30_000],
    ["+30s", 30_000],
  ])("reads %s", (text, ms) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 9);
  });

  it.each(["", "30", "m", "1.2.3s", "1h 30m", " 1h", "1h ", "1w", "1H", "--1s", "-", "+", ".s", "1e3s", "0x1s", "eternity"])(
    "refuses '%s' and shows how to write one",
    (text) => {
      expect(() => parseDuration(text)).toThrow(`invalid duration '${text}': write a number and a unit, such as 30m`);
    },
  );

  it.each(["9999999999h", "-9999999999h", "36501d", "36500d1ms", `${"9".repeat(400)}h`])(
    "refuses %s, which leads beyond all dates",
    (text) => {
      expect(() => parseDuration(text)).toThrow(/^invalid duration '-?\d+[hd.].*: it is longer than 36500d, which is 100 years$/);
      expect(parseDuration("36500d")).toBe(36_500 * 86_400_000);
    },
  );

  it("adds up its parts", () => {
    const unit = fc.constantFrom("ms", "s", "m", "h", "d");
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(7_000), unit), { minLength: 1, maxLength: 5 }), (parts) => {
        const texts = parts.map(([count, name]) => `${count}${name}`);
        expect(parseDuration(texts.join(""))).toBe(texts.map(parseDuration).reduce((sum, ms) => sum + ms, 0));
      }),
    );
  });

  it("returns a finite number or a platform error for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("1", "0", ".", "h", "m", "s", "d", "-", "+", "µ", " ") }), (text) => {
        try {
          expect(Number.isFinite(parseDuration(text))).toBe(true);
        } catch (error) {
          expect(isPlatformError(error, "request.invalid")).toBe(true);
        }
      }),
    );
  });
});

describe("formatDuration", () => {
  it.each([
    [0, "0s"],
    [90_000, "1m30s"],
    [86_400_000, "1d"],
    [5_400_000, "1h30m"],
    [1_001, "1s1ms"],
    [-1_500, "-1s500ms"],
  ])("writes %d as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it("writes what parseDuration reads back, for all whole milliseconds of a hundred years", () => {
    fc.assert(
      fc.property(fc.integer({ min: -36_500 * 86_400_000, max: 36_500 * 86_400_000 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms === 0 ? 0 : ms);
      }),
    );
  });
});
