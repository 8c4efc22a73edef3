import { decodeLenient, decodeStrict, universalNewlines, writeJson } from "@aenv/benchmark";
import { getLogParser } from "../parsers/registry.ts";
import type { EvalSpec } from "../spec/spec.ts";
import { classifyFailure } from "./infrastructure.ts";
import { type LogResult, readTestLog } from "./log.ts";
import { judgeTests, type Resolution, resolutionOf, type TestsStatus } from "./verdicts.ts";

/** The result of an instance, with the keys of the reference in their order. */
export interface InstanceReport {
  readonly patch_is_None: boolean;
  readonly patch_exists: boolean;
  readonly patch_successfully_applied: boolean;
  readonly resolved: boolean;
  readonly infra_failure: boolean;
  readonly infra_failure_reason?: string;
  readonly tests_status?: TestsStatus;
}

export interface Grade {
  readonly report: InstanceReport;
  /** Null without a result of the tests. */
  readonly resolution: Resolution | null;
}

/**
 * Grades the output of the tests of an instance. Without a patch, null, the output is not read. Throws a `PyError` where the
 * reference raises: the instance then has no report and counts as an error.
 */
export function gradeOutput(spec: EvalSpec, patch: string | null, output: Uint8Array): Grade {
  if (patch === null) return { report: { ...UNGRADED, patch_is_None: true }, resolution: null };
  const { map, hasRun } = readOutput(spec, output);
  if (!hasRun) {
    const failure = classifyFailure(universalNewlines(decodeLenient(output)));
    const report = { ...UNGRADED, patch_exists: true };
    if (failure === null) return { report, resolution: null };
    const advice = { infra_failure: failure.tier === "environment", infra_failure_reason: failure.reason };
    return { report: { ...report, ...advice }, resolution: null };
  }
  const tests = judgeTests(map, spec);
  const resolution = resolutionOf(tests);
  const result = { patch_exists: true, patch_successfully_applied: true, resolved: resolution === "RESOLVED_FULL" };
  return { report: { ...UNGRADED, ...result, tests_status: tests }, resolution };
}

/** The statuses of the tests in the output of a run. */
export function readOutput(spec: EvalSpec, output: Uint8Array): LogResult {
  const parse = getLogParser(spec.logParser);
  return readTestLog(universalNewlines(decodeStrict(output, "the output of the tests")), parse, spec);
}

/** The bytes of `report.json`. */
export function writeInstanceReport(instanceId: string, report: InstanceReport): string {
  return writeJson(new Map([[instanceId, report]]), 4);
}

const UNGRADED: InstanceReport = {
  patch_is_None: false,
  patch_exists: false,
  patch_successfully_applied: false,
  resolved: false,
  infra_failure: false,
};
