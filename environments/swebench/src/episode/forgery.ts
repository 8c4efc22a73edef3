import { contradictions } from "../grading/contradictions.ts";
import type { EvalSpec } from "../spec/spec.ts";
import { type Canary, hasFailed } from "./canary.ts";

/** What is strange about the results of a resolved instance. The patch is the cause only if a run without the patch does not show it. */
export interface Signs {
  /** The test that must fail has not. */
  readonly isCanaryMissing: boolean;
  /** Required tests that have both passed and failed. */
  readonly contradictory: readonly string[];
}

/** Null if there are none. */
export function signsIn(spec: EvalSpec, canary: Canary | null, output: string): Signs | null {
  const isCanaryMissing = canary !== null && !hasFailed(canary, output);
  const contradictory = contradictions(spec, output);
  return isCanaryMissing || contradictory.length > 0 ? { isCanaryMissing, contradictory } : null;
}

/** Why results are not believed; null if the run without the patch, the control, has the same signs. */
export function forgeryOf({ isCanaryMissing, contradictory }: Signs, canary: Canary | null, control: Signs | null): string | null {
  if (isCanaryMissing && control?.isCanaryMissing !== true)
    return `the results are not those of the tests: ${canary?.test ?? "a test"}, which always fails, has not failed`;
  const own = contradictory.filter((test) => control?.contradictory.includes(test) !== true);
  return own.length === 0 ? null : `the results contradict each other: '${own[0]}' has both passed and failed`;
}
