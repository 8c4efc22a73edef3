import { visitResults } from "../parsers/status-map.ts";
import type { EvalSpec } from "../spec/spec.ts";
import { readOutput } from "./report.ts";
import { isPass, isTruncated } from "./verdicts.ts";

/** Required tests that the output shows both as passed and as failed. By the rules of the reference, the last result counts. */
export function contradictions(spec: EvalSpec, output: string): string[] {
  const passed = new Set<string>();
  const failed = new Set<string>();
  const visit = (test: string, status: string): void => {
    if (isPass(status)) passed.add(test);
    else if (status === "FAILED" || status === "ERROR") failed.add(test);
  };
  visitResults(visit, () => readOutput(spec, Buffer.from(output)));
  const both = [...passed].filter((test) => failed.has(test));
  if (both.length === 0) return [];
  const names = new Set(both);
  const isAffected = (test: string) => names.has(test) || (isTruncated(test) && both.some((name) => name.startsWith(test)));
  return [...spec.failToPass, ...spec.passToPass].filter(isAffected);
}
