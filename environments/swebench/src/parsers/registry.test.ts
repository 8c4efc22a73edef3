import { PyError } from "@aenv/benchmark";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getLogParser, logParsers } from "./registry.ts";

/** Pieces of real logs, so that random logs have results in them. */
const PIECES = [
  ..."\n\t \r\u001b\u0085\u2028\ufeff😀é✓✔✕✖✗✘×○↓↩●()[]{}<>.:=-#/0٣".split(""),
  ...[
    "PASSED a::b",
    "FAILED a - b",
    "ERROR: x",
    "SKIPPED [1] x",
    " ... ok",
    " ... ",
    "FAIL: x",
    "ERROR:",
    "test_a ok",
    "\nok\n",
    "PASS x (3 s)",
  ],
  ...[
    "  1) a\n",
    "    ✓ a (3ms)",
    " ./node_modules/.bin/jest ",
    " xvfb-run ",
    "Starting browser Chrome",
    "running 3 test files",
    "3 passing",
  ],
  ...["./node_modules/.bin/mocha tests/run.js --reporter json", '{"failures": [], "passes": []}', "[smoke] /tmp/a.qmd ... 32mok", "{", "}"],
  ...["<a>", "</a>", '<doctest><TestCase name="a"><SubCase/></TestCase></doctest>', "<doctest", "</doctest>", "BUILD SUCCESS", "-Dtest=a "],
  ...[
    "--- PASS: A (1s)",
    "test a ... ok",
    "[ok]: a",
    "[  OK  ] a (1 ms)",
    "a. b = c .",
    "a ...F",
    "a: .",
    "a - passed",
    "[junit] [PASS] a",
  ],
];
const log = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((parts) => parts.join("")),
);

function attempt(name: string, text: string, version: string): unknown {
  try {
    return [...getLogParser(name)(text, { instanceId: "a__b-9141", version })];
  } catch (error) {
    if (error instanceof PyError) return error.kind;
    throw error;
  }
}

describe("log parsers", () => {
  it("are 44 under 57 names", () => {
    expect(logParsers.size).toBe(57);
    expect(new Set(logParsers.values()).size).toBe(44);
    expect([...logParsers.keys()].every((name) => name.startsWith("parse_log_"))).toBe(true);
  });

  it("are not found without the prefix of their names", () => {
    expect(() => getLogParser("pytest")).toThrow("there is no log parser 'pytest'");
  });

  it("give results or raise for any text, and the same again", () => {
    fc.assert(
      fc.property(fc.constantFrom(...logParsers.keys()), log, fc.constantFrom("1.27", "9.5", "3", "2", "x"), (name, text, version) => {
        expect(attempt(name, text, version)).toEqual(attempt(name, text, version));
      }),
      { numRuns: 3000 },
    );
  });

  it("for lines find the same tests in a log twice", () => {
    const names = ["gotest", "cargo", "redis", "pytest", "pytest_v2", "seaborn", "jest", "vitest", "carbon", "googletest", "ant", "tap"];
    fc.assert(
      fc.property(fc.constantFrom(...names), log, (name, text) => {
        expect(attempt(`parse_log_${name}`, `${text}\n${text}`, "1")).toEqual(attempt(`parse_log_${name}`, text, "1"));
      }),
    );
  });

  it("read a word of JavaScript's objects as a word", () => {
    expect(attempt("parse_log_cargo", "test a ... constructor\ntest b ... ok", "1")).toEqual([["b", "PASSED"]]);
  });

  it("keep the first position and the last status of a test", () => {
    expect(attempt("parse_log_pytest", "PASSED a\nPASSED b\nFAILED a", "1")).toEqual([
      ["a", "FAILED"],
      ["b", "PASSED"],
    ]);
  });

  it("handle a line of a million characters", { timeout: 120_000 }, () => {
    const text = `PASSED ${"a b".repeat(350_000)}`;
    for (const name of logParsers.keys()) attempt(name, text, "1");
  });
});
