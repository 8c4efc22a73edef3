import { compareText, decodeLenient, PyError, universalNewlines, writeJson } from "@aenv/benchmark";
import { classifyFailure } from "../grading/infrastructure.ts";
import type { ArtifactName } from "./paths.ts";
import { modelOf, type Prediction } from "./predictions.ts";
import { readResolved } from "./resolved.ts";

/** Returns a file of an instance; null if it does not exist. */
export type ReadArtifact = (model: string, instanceId: string, name: ArtifactName) => Uint8Array | null;

export interface RunReportInput {
  /** The instances of the dataset, in its order. */
  readonly instanceIds: readonly string[];
  readonly predictions: ReadonlyMap<string, Prediction>;
  readonly read: ReadArtifact;
}

/** The result of a run: which instances are in which state. */
export interface RunReport {
  readonly instances: number;
  readonly submitted: readonly string[];
  readonly completed: readonly string[];
  readonly incomplete: readonly string[];
  readonly emptyPatch: readonly string[];
  readonly resolved: readonly string[];
  readonly unresolved: readonly string[];
  /** Also unresolved or errors: infrastructure is the likely cause. */
  readonly infraFailure: readonly string[];
  readonly ambiguousFailure: readonly string[];
  readonly errors: readonly string[];
  readonly failureReasons: ReadonlyMap<string, string>;
}

export function makeRunReport({ instanceIds, predictions, read }: RunReportInput): RunReport {
  if (predictions.size === 0) throw new PyError("IndexError", "there are no predictions to report on");
  const completed = new Set<string>();
  const incomplete = new Set<string>();
  const emptyPatch = new Set<string>();
  const resolved = new Set<string>();
  const unresolved = new Set<string>();
  const errors = new Set<string>();
  for (const id of instanceIds) {
    const prediction = predictions.get(id);
    if (prediction === undefined) incomplete.add(id);
    else if (isEmptyPatch(prediction)) emptyPatch.add(id);
    else {
      const file = read(modelOf(prediction), id, "report.json");
      if (file !== null) completed.add(id);
      const result = file === null ? null : readResolved(file, id);
      (result === null ? errors : result ? resolved : unresolved).add(id);
    }
  }
  const infraFailure = new Set<string>();
  const ambiguousFailure = new Set<string>();
  const failureReasons = new Map<string, string>();
  for (const id of sorted(new Set([...unresolved, ...errors]))) {
    const prediction = predictions.get(id);
    const failure = prediction === undefined ? null : classifyFailure(logsOf(prediction, read));
    if (failure === null) continue;
    failureReasons.set(id, failure.reason);
    (failure.tier === "environment" ? infraFailure : ambiguousFailure).add(id);
  }
  return {
    instances: instanceIds.length,
    submitted: sorted(predictions.keys()),
    completed: sorted(completed),
    incomplete: sorted(incomplete),
    emptyPatch: sorted(emptyPatch),
    resolved: sorted(resolved),
    unresolved: sorted(unresolved),
    infraFailure: sorted(infraFailure),
    ambiguousFailure: sorted(ambiguousFailure),
    errors: sorted(errors),
    failureReasons,
  };
}

/** The bytes of the file, in the schema of the reference. */
export function writeRunReport(report: RunReport): string {
  const json = {
    total_instances: report.instances,
    submitted_instances: report.submitted.length,
    completed_instances: report.completed.length,
    resolved_instances: report.resolved.length,
    unresolved_instances: report.unresolved.length,
    infra_failure_instances: report.infraFailure.length,
    ambiguous_failure_instances: report.ambiguousFailure.length,
    empty_patch_instances: report.emptyPatch.length,
    error_instances: report.errors.length,
    completed_ids: report.completed,
    incomplete_ids: report.incomplete,
    empty_patch_ids: report.emptyPatch,
    submitted_ids: report.submitted,
    resolved_ids: report.resolved,
    unresolved_ids: report.unresolved,
    infra_failure_ids: report.infraFailure,
    ambiguous_failure_ids: report.ambiguousFailure,
    failure_reasons: report.failureReasons,
    error_ids: report.errors,
    schema_version: 2,
  };
  return `${writeJson(json, 4)}\n`;
}

/** What the reference prints after a run. */
export function printRunReport(report: RunReport, input: RunReportInput, path: string): string {
  const submitted = new Set(input.instanceIds.filter((id) => input.predictions.has(id)));
  const lines: readonly (readonly [string, number])[] = [
    ["Total instances", report.instances],
    ["Instances submitted", submitted.size],
    ["Instances completed", report.completed.length],
    ["Instances incomplete", report.incomplete.length],
    ["Instances resolved", report.resolved.length],
    ["Instances unresolved", report.unresolved.length],
    ["Instances with likely infrastructure failures", report.infraFailure.length],
    ["Instances with ambiguous failures", report.ambiguousFailure.length],
    ["Instances with empty patches", report.emptyPatch.length],
    ["Instances with errors", report.errors.length],
  ];
  return `${lines.map(([what, count]) => `${what}: ${count}\n`).join("")}Report written to ${path}\n`;
}

/** The model that names the report: that of the first prediction. */
export function reportedModel(predictions: ReadonlyMap<string, Prediction>): string {
  const [first] = predictions.values();
  if (first === undefined) throw new PyError("IndexError", "there are no predictions to report on");
  return modelOf(first);
}

/** Instances with an empty patch are not run. The report counts a missing patch as an empty one. */
function isEmptyPatch({ all }: Prediction): boolean {
  const patch = all.get("model_patch") ?? null;
  return patch === null || patch === "";
}

function logsOf(prediction: Prediction, read: ReadArtifact): string {
  const files = (["test_output.txt", "run_instance.log"] as const).map((name) => read(modelOf(prediction), prediction.instanceId, name));
  return files.flatMap((file) => (file === null ? [] : [universalNewlines(decodeLenient(file))])).join("\n");
}

function sorted(ids: Iterable<string>): string[] {
  return [...ids].sort(compareText);
}
