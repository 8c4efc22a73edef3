import type { JsonObject } from "@aenv/benchmark";
import { describe, expect, it } from "vitest";
import { toJson } from "../dataset/row.ts";
import { logParsers } from "../parsers/registry.ts";
import { makeSpec } from "../spec/spec.ts";
import { forgeryOf, signsIn } from "./forgery.ts";

/** Lines with which a runner reports that the test `name` has passed and failed, by parser, and the name that the parser finds. */
const REPORTS: Readonly<Record<string, readonly [passed: string, failed: string, name: string, head?: string]>> = {
  ant: ["[junit] [PASS] a", "[junit] [FAIL] a", "a"],
  calypso: [" ✓ a", " ✕ a", "- a", "+ ./node_modules/.bin/jest x\n"],
  carbon: ["PASS a", "FAIL a", "a"],
  cargo: ["test a ... ok", "test a ... FAILED", "a"],
  cucumber: ["a ...", "a ..F", "a"],
  django: ["a ... ok", "a ... FAIL", "a"],
  googletest: ["[ OK ] a (1 ms)", "[ FAILED ] a (1 ms)", "a"],
  gotest: ["--- PASS: a (0.1s)", "--- FAIL: a (0.1s)", "a"],
  gradle_custom: ["abc PASSED", "abc FAILED", "abc"],
  grommet: ["PASS a", "FAIL a", "a"],
  highlightjs: ["✓ a", "1) a", "a"],
  immutable_js: ["✓ ab", "✕ ab", "ab"],
  jekyll: ["ab. = .", "ab. = F", "ab"],
  jest: ["✓ ab", "✕ ab", "ab"],
  jest_json: ["[PASSED] a", "[FAILED] a", "a"],
  jq: ["PASS: a", "FAIL: a", "a"],
  karma: [" ✔ a", " ✖ a", "a", "Starting browser\n"],
  lighthouse: ["✔ a", "1) a", "a", "running 1 test files\n"],
  matplotlib: ["PASSED a", "FAILED a", "a"],
  maven: ["x -Dtest=a\nBUILD SUCCESS", "x -Dtest=a\nBUILD FAILURE", "a"],
  micropython_test: ["pass a", "FAIL a", "a"],
  minitest: ["ab. = .", "ab. = F", "ab"],
  next: ["✓ a", "✗ a", "a", " xvfb-run \nStarting browser Chrome\n"],
  phpunit: ["✔ a", "✘ a", "None > a"],
  pytest: ["PASSED a", "FAILED a", "a"],
  pytest_options: ["PASSED a", "FAILED a", "a"],
  pytest_v2: ["PASSED a", "FAILED a", "a"],
  quarto_cli: ["[smoke] > a ... \u001b[32mok", "[smoke] > a ... \u001b[31mFAILED", "[smoke] > a"],
  react_pdf: ["PASS a", "FAIL a", "a"],
  redis: ["[ok]: a", "[err]: a", "a"],
  rspec_transformed_json: ["a - passed", "a - failed", "a"],
  ruby_unit: ["a: .", "a: F", "a"],
  seaborn: ["a PASSED [1%]", "FAILED a", "a"],
  sympy: ["test_a ok", "test_a F", "test_a"],
  tap: ["ok 1 a", "not ok 1 a", "a"],
  vitest: ["✓ ab", "× ab", "ab"],
};

/** Reports that are one document, or that list failures only: a line more makes them unreadable, or is no success. */
const WITHOUT = ["bpmn_js", "chart_js", "eslint", "marked", "openlayers", "p5js", "doctest", "prismjs"];

function specOf(parser: string, test: string) {
  return makeSpec(
    toJson({
      instance_id: parser === "immutable_js" ? "immutable-js__immutable-js-2006" : "a__b-9141",
      repo: "a/b",
      version: "10.0",
      image: "image",
      log_parser: `parse_log_${parser}`,
      eval_type: "pass_and_fail",
      eval_script: "",
      FAIL_TO_PASS: [test],
      PASS_TO_PASS: [],
    }) as JsonObject,
  );
}

const outputOf = (results: string) => `+ : '>>>>> Start Test Output'\n${results}\n+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: 1\n`;

describe("results that a patch prints beside those of the tests", () => {
  it.each(Object.entries(REPORTS))("are found in a log of %s", (parser, [passed, failed, name, head = ""]) => {
    const spec = specOf(parser, name);
    for (const lines of [`${failed}\n${passed}`, `${passed}\n${failed}`]) {
      const signs = signsIn(spec, null, outputOf(head + lines));
      expect(signs).toEqual({ isCanaryMissing: false, contradictory: [name] });
      expect(signs && forgeryOf(signs, null, null)).toBe(`the results contradict each other: '${name}' has both passed and failed`);
    }
    for (const line of [passed, failed]) expect(signsIn(spec, null, outputOf(head + line))).toBeNull();
    expect(signsIn(specOf(parser, "other"), null, outputOf(`${head}${failed}\n${passed}`))).toBeNull();
  });

  it("are looked for with every parser", () => {
    const own = new Set(logParsers.values());
    for (const name of [...Object.keys(REPORTS), ...WITHOUT]) own.delete(logParsers.get(`parse_log_${name}`) as never);
    expect(own).toEqual(new Set());
  });

  it("are believed if the tests contradict each other without the patch, too", () => {
    const signs = { isCanaryMissing: false, contradictory: ["a", "b"] };
    expect(forgeryOf(signs, null, signs)).toBeNull();
    expect(forgeryOf(signs, null, { ...signs, contradictory: ["a"] })).toContain("'b' has both passed and failed");
  });

  it("are found for names without the end of their parameters", () => {
    const spec = specOf("pytest", "a[");
    expect(signsIn(spec, null, outputOf("PASSED a[1]\nFAILED a[1]"))?.contradictory).toEqual(["a["]);
  });
});

describe("a test that must fail and has not", () => {
  const spec = specOf("tap", "a");
  const canary = { spec, test: "1a" };
  const signs = signsIn(spec, canary, outputOf("ok 1 a"));

  it("is a forgery if it fails without the patch", () => {
    expect(signs).toEqual({ isCanaryMissing: true, contradictory: [] });
    expect(signs && forgeryOf(signs, canary, signsIn(spec, canary, outputOf("not ok 1 a\nnot ok 2 - 1a")))).toContain(
      "1a, which always fails",
    );
  });

  it("is none if it is not run without the patch either", () => {
    expect(signs && forgeryOf(signs, canary, signsIn(spec, canary, outputOf("not ok 1 a")))).toBeNull();
  });
});
