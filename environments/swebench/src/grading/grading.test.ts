import type { JsonObject } from "@aenv/benchmark";
import { describe, expect, it } from "vitest";
import { toJson } from "../dataset/row.ts";
import { makeSpec } from "../spec/spec.ts";
import { gradeOutput, writeInstanceReport } from "./report.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function specOf(changes: object = {}) {
  const row = {
    instance_id: "a__b-1",
    repo: "a/b",
    version: "1",
    image: "image",
    log_parser: "parse_log_pytest",
    eval_type: "pass_and_fail",
    eval_script: "pytest",
    FAIL_TO_PASS: ["a"],
    PASS_TO_PASS: ["b"],
  };
  return makeSpec(toJson({ ...row, ...changes }) as JsonObject);
}

const output = (results: string, code = 0): string =>
  `+ : '>>>>> Start Test Output'\n${results}\n+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: ${code}\n`;

describe("grading", () => {
  it("resolves an instance whose tests all pass", () => {
    const { report, resolution } = gradeOutput(specOf(), "diff", bytes(output("PASSED a\nSKIPPED b")));
    expect(resolution).toBe("RESOLVED_FULL");
    expect(report).toMatchObject({ patch_exists: true, patch_successfully_applied: true, resolved: true });
  });

  it("does not believe successes of tests that exit with a failure", () => {
    const { report } = gradeOutput(specOf(), "diff", bytes(output("PASSED a\nPASSED b", 1)));
    expect(report).toMatchObject({ patch_successfully_applied: false, resolved: false });
    expect(report.tests_status).toBeUndefined();
  });

  it("names the likely cause of a run without results", () => {
    const { report } = gradeOutput(specOf(), "diff", bytes("x\r\nKilled\r\n"));
    expect(report).toMatchObject({ infra_failure: true, infra_failure_reason: "out_of_memory" });
  });

  it("raises for output that is not UTF-8, for an unknown parser and for an unknown mode", () => {
    expect(() => gradeOutput(specOf(), "diff", new Uint8Array([0xff]))).toThrow("not valid UTF-8");
    expect(() => gradeOutput(specOf({ log_parser: "pytest" }), "diff", bytes(""))).toThrow("no log parser");
    expect(() => gradeOutput(specOf({ eval_type: "x" }), "diff", bytes(output("PASSED a")))).toThrow("unknown eval_type 'x'");
  });

  it("reads no output without a patch", () => {
    expect(gradeOutput(specOf(), null, new Uint8Array([0xff])).report.patch_is_None).toBe(true);
  });

  it("writes the report in ASCII without a final newline", () => {
    const { report } = gradeOutput(specOf(), null, bytes(""));
    expect(writeInstanceReport("é", report)).toBe(
      '{\n    "\\u00e9": {\n        "patch_is_None": true,\n        "patch_exists": false,\n        "patch_successfully_applied": false,\n        "resolved": false,\n        "infra_failure": false\n    }\n}',
    );
  });
});
