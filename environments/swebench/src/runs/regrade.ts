import { PyError } from "@aenv/benchmark";
import { gradeOutput } from "../grading/report.ts";
import type { EvalSpec } from "../spec/spec.ts";
import { modelOf, type Prediction, patchOf } from "./predictions.ts";
import type { RunFolder } from "./run-folder.ts";
import { isShortened } from "./shortened.ts";

export interface Regraded {
  readonly instanceId: string;
  /** Null if the output of the tests could not be graded; the old report then stays. */
  readonly isResolved: boolean | null;
  readonly error: string | null;
}

/** Grades the stored output of tests anew, without running anything. Instances without output are left out. */
export function regradeRun(run: RunFolder, specs: readonly EvalSpec[], predictions: ReadonlyMap<string, Prediction>): Regraded[] {
  return specs.flatMap((spec) => {
    const prediction = predictions.get(spec.instanceId);
    const output = prediction === undefined ? null : run.read(modelOf(prediction), spec.instanceId, "test_output.txt");
    return prediction === undefined || output === null ? [] : [regrade(run, spec, prediction, output)];
  });
}

function regrade(run: RunFolder, spec: EvalSpec, prediction: Prediction, output: Uint8Array): Regraded {
  const { instanceId } = spec;
  // A part of the output has a part of the results: the verdict of the run is the better one.
  if (isShortened(output)) return { instanceId, isResolved: null, error: "its output was shortened" };
  try {
    const { report } = gradeOutput(spec, patchOf(prediction), output);
    run.keepReport(modelOf(prediction), instanceId, report);
    return { instanceId, isResolved: report.resolved, error: null };
  } catch (error) {
    if (!(error instanceof PyError)) throw error;
    return { instanceId, isResolved: null, error: error.message };
  }
}
