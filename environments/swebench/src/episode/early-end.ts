import { readOutput } from "../grading/report.ts";
import { hasResult } from "../grading/verdicts.ts";
import { type Canary, hasFailed } from "./canary.ts";

/**
 * Tests that must go on passing and have no result, in a run in which the additional test has failed as it must. A runner that is configured
 * to end at the first failure leaves them out.
 */
export function missingAfter(canary: Canary, output: string): readonly string[] {
  return hasFailed(canary, output) ? missingIn(canary, output) : [];
}

/**
 * Whether the runner has ended the run, and not the patch: then a run without the patch, the control, lacks some of these tests too. They pass
 * without the patch.
 */
export function hasEndedRun(missing: readonly string[], canary: Canary, control: string): boolean {
  const alsoMissing = missingIn(canary, control);
  return missing.some((test) => alsoMissing.includes(test));
}

function missingIn({ spec }: Canary, output: string): readonly string[] {
  const { map } = readOutput(spec, Buffer.from(output));
  return spec.passToPass.filter((test) => !hasResult(map, test));
}
