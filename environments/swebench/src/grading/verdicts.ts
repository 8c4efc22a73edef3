import { PyError } from "@aenv/benchmark";
import type { StatusMap } from "../parsers/parser.ts";

/** Required tests that passed and that did not, in the order of the row. */
export interface Verdicts {
  readonly success: readonly string[];
  readonly failure: readonly string[];
}

export interface TestsStatus {
  readonly FAIL_TO_PASS: Verdicts;
  readonly PASS_TO_PASS: Verdicts;
  /** Always empty; a part of the reference's schema. */
  readonly FAIL_TO_FAIL: Verdicts;
  readonly PASS_TO_FAIL: Verdicts;
}

export type Resolution = "RESOLVED_FULL" | "RESOLVED_PARTIAL" | "RESOLVED_NO";

export interface RequiredTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly evalType: string;
}

/** Compares the required tests with their statuses in the log. */
export function judgeTests(map: StatusMap, { failToPass, passToPass, evalType }: RequiredTests): TestsStatus {
  if (evalType !== "pass_and_fail" && evalType !== "fail_only")
    throw new PyError("ValueError", `unknown eval_type '${evalType}': use pass_and_fail or fail_only`);
  const judge = (tests: readonly string[], mayBeSkipped: boolean): Verdicts => {
    const verdicts = { success: [] as string[], failure: [] as string[] };
    for (const test of tests) {
      const list = evalType === "fail_only" ? failOnlyVerdict(map, test) : verdict(map, test, mayBeSkipped);
      if (list !== null) verdicts[list].push(test);
    }
    return verdicts;
  };
  return {
    FAIL_TO_PASS: judge(failToPass, false),
    PASS_TO_PASS: judge(passToPass, true),
    FAIL_TO_FAIL: { success: [], failure: [] },
    PASS_TO_FAIL: { success: [], failure: [] },
  };
}

export function resolutionOf({ FAIL_TO_PASS, PASS_TO_PASS }: TestsStatus): Resolution {
  const fixed = rate(FAIL_TO_PASS);
  if (rate(PASS_TO_PASS) !== 1 || fixed === 0) return "RESOLVED_NO";
  return fixed === 1 ? "RESOLVED_FULL" : "RESOLVED_PARTIAL";
}

/** Logs of some runners list failures only, so a test that is not listed has passed. */
function failOnlyVerdict(map: StatusMap, test: string): keyof Verdicts {
  return map.get(test) === "FAILED" ? "failure" : "success";
}

/** Null for a status that is none, such as `ERROR:`: the test is in neither list and does not count. */
function verdict(map: StatusMap, test: string, mayBeSkipped: boolean): keyof Verdicts | null {
  const name = findName(map, test);
  const status = name === null ? null : map.get(name);
  if (isPass(status) || (mayBeSkipped && status === "SKIPPED")) return "success";
  return status === null || status === "FAILED" || status === "ERROR" || status === "SKIPPED" ? "failure" : null;
}

/** The name in the log. Rows have some parametrized names without their end: all tests that begin so must agree. */
function findName(map: StatusMap, test: string): string | null {
  if (map.has(test)) return test;
  if (!isTruncated(test)) return null;
  const candidates = [...map].filter(([name]) => name.startsWith(test));
  const passed = candidates.filter(([, status]) => isPass(status)).length;
  return passed === 0 || passed === candidates.length ? (candidates[0]?.[0] ?? null) : null;
}

/** Whether the log has the test, with whatever status. */
export function hasResult(map: StatusMap, test: string): boolean {
  return map.has(test) || (isTruncated(test) && [...map.keys()].some((name) => name.startsWith(test)));
}

/** Whether the name lacks the end of its parameters. */
export function isTruncated(test: string): boolean {
  return count(test, "[") > count(test, "]");
}

export function isPass(status: string | null | undefined): boolean {
  return status === "PASSED" || status === "XFAIL";
}

function count(text: string, char: string): number {
  return text.split(char).length - 1;
}

function rate({ success, failure }: Verdicts): number {
  const total = success.length + failure.length;
  return total === 0 ? 1 : success.length / total;
}
