import { strip } from "@aenv/benchmark";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Pattern } from "../python/pattern.ts";
import { parseGoogletest, parseMicropythonTest } from "./c/c.ts";
import { parseBpmnJs, parseChartJs } from "./javascript/karma.ts";
import { readTitles } from "./javascript/mocha-report.ts";
import { eachLineWith } from "./lines.ts";
import { parseRspecTransformedJson } from "./ruby.ts";

/** Texts of these pieces, with a line end after about every tenth. */
function textOf(...pieces: readonly string[]): fc.Arbitrary<string> {
  const piece = fc.constantFrom(...pieces);
  return fc
    .array(fc.oneof({ weight: 9, arbitrary: piece }, { weight: 1, arbitrary: fc.constant("\n") }), { maxLength: 60 })
    .map((all) => all.join(""));
}

/** The groups of all matches, in the order of the patterns. */
function groups(text: string, patterns: readonly (readonly [pattern: Pattern, group: number])[]): string[] {
  return [...new Set(patterns.flatMap(([pattern, group]) => pattern.findAll(text).map((found) => found[group] ?? "")))];
}

describe("parsers that are faster than the pattern of the reference find the same", () => {
  it("in logs of googletest", () => {
    const line = new Pattern(".*\\[\\s*(OK|FAILED)\\s*\\]\\s(.*)\\s\\(.*\\)$");
    const text = textOf("[", "]", " ", "OK", "FAILED", "(", ")", "a", "\u3000", "[ OK ] a (1 ms)", " (", "] ", ") ", "\r");
    fc.assert(
      fc.property(text, (log) => {
        const expected = new Map<string, string>();
        for (const one of log.split("\n")) {
          const found = line.match(strip(one));
          if (found !== null) expected.set(found[2] ?? "", found[1] === "OK" ? "PASSED" : "FAILED");
        }
        expect([...parseGoogletest(log)]).toEqual([...expected]);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ["MicroPython", parseMicropythonTest, "(pass|FAIL|skip)\\s+(.+)$", 1, 2, ["pass", "FAIL", "skip", "pass  a"]],
    ["RSpec", parseRspecTransformedJson, "(.+) - (passed|failed)", 2, 1, [" - passed", " - failed", "a - passed", "passed"]],
  ] as const)("in logs of %s", (_, parse, source, word, name, pieces) => {
    const pattern = new Pattern(source);
    const status = (text = "") => (text === "skip" ? "SKIPPED" : text.startsWith("pass") ? "PASSED" : "FAILED");
    fc.assert(
      fc.property(textOf(...pieces, " ", "a", "\u3000", "-", "\r", "\n", "\n"), (log) => {
        const expected = new Map<string, string>();
        for (const one of log.split("\n")) {
          const found = pattern.match(strip(one));
          if (found !== null) expected.set(found[name] ?? "", status(found[word]));
        }
        expect([...parse(log)]).toEqual([...expected]);
      }),
      { numRuns: 2000 },
    );
  });

  it("in lines with one of some texts", () => {
    const needs = ["ab", "b", "c"];
    fc.assert(
      fc.property(textOf("a", "b", "c", "d", "\n", "\n"), (text) => {
        const lines: string[] = [];
        eachLineWith(text, needs, (line) => lines.push(line));
        expect(lines).toEqual(text.split("\n").filter((line) => needs.some((need) => line.includes(need))));
      }),
      { numRuns: 2000 },
    );
  });

  it("in logs of karma, for bpmn-js", () => {
    const patterns = [
      [new Pattern("2KPhantomJS\\s[\\d.]+\\s\\(Linux\\s[\\d.]+\\)\\s(.*)FAILED\\n"), 1],
      [new Pattern("2KPhantomJS\\s[\\d.]+\\s\\(Linux\\sx86_64\\)\\s(.*)FAILED\\n"), 1],
      [new Pattern("Chrome\\sHeadless\\s(.*)\\s\\(Linux\\sx86_64\\)\\s(.*)FAILED\\n"), 2],
      [new Pattern("HeadlessChrome\\s[\\d.]+\\s\\(Linux\\s[\\d.]+\\)\\s(.*)FAILED\\n"), 1],
    ] as const;
    const text = textOf(
      ...["2KPhantomJS", "Chrome Headless", "HeadlessChrome", " 1.2 (Linux 0.0)", " (Linux x86_64)", " ", "a", "FAILED", "FAILED\n", "\n"],
      ...["2KPhantomJS 1.2 (Linux 0.0) ", "2KPhantomJS 1.2 (Linux x86_64) ", "HeadlessChrome 1.2 (Linux 0.0) "],
    );
    fc.assert(
      fc.property(text, (log) => {
        expect([...parseBpmnJs(log).keys()]).toEqual(groups(log, patterns));
      }),
      { numRuns: 2000 },
    );
  });

  it("in logs of karma, for Chart.js", () => {
    const pattern = new Pattern("Chrome\\s[\\d.]+[^\\S\\r\\n]\\(.+?\\)[^\\S\\r\\n](.*)FAILED$", "M");
    const text = textOf("Chrome", "Chrome 1.2 (x) ", " ", "1.2", "(", ")", ") ", "a", "FAILED", "FAILED\n", "\r", "\t", "\n");
    fc.assert(
      fc.property(text, (log) => {
        expect([...parseChartJs(log).keys()]).toEqual(groups(log, [[pattern, 1]]));
      }),
      { numRuns: 2000 },
    );
  });

  describe("in reports of mocha", () => {
    const text = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('a "b"', "c\\d", "é\n", "{", "]", "fullTitle"));
    const error = fc.dictionary(text, fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean()), { maxKeys: 3 });
    const test = fc.record(
      { title: text, fullTitle: text, file: text, duration: fc.nat(), currentRetry: fc.nat(), speed: text, err: error },
      { requiredKeys: ["title", "fullTitle"] },
    );
    const tests = fc.array(test, { maxLength: 4 });
    const report = fc.record({ stats: error, tests, pending: tests, failures: tests, passes: tests });
    const written = fc.tuple(report, fc.constantFrom(0, 2)).map(([value, spaces]) => JSON.stringify(value, null, spaces));
    /** What the text says, if it is JSON with lists of tests that have titles. */
    const titlesOf = (json: string) => {
      try {
        const { failures, passes } = JSON.parse(json) as Record<string, { fullTitle: string }[]>;
        return { failures: failures?.map(({ fullTitle }) => fullTitle), passes: passes?.map(({ fullTitle }) => fullTitle) };
      } catch {
        return null;
      }
    };

    it("that mocha writes", () => {
      fc.assert(
        fc.property(written, (json) => {
          expect(readTitles(json)).toEqual(titlesOf(json));
        }),
        { numRuns: 500 },
      );
    });

    it("and decide on no others", () => {
      const changed = fc.tuple(
        written,
        fc.nat(),
        fc.nat({ max: 3 }),
        fc.constantFrom("", '"', "{", "}", ",", "\\", "0", "\t", "\u00a0", "x"),
      );
      fc.assert(
        fc.property(changed, ([json, at, length, put]) => {
          const start = at % json.length;
          const other = json.slice(0, start) + put + json.slice(start + length);
          const titles = readTitles(other);
          if (titles !== null) expect(titles).toEqual(titlesOf(other));
        }),
        { numRuns: 3_000 },
      );
    });
  });
});
