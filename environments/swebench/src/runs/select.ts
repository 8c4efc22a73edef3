import { type Json, PyError } from "@aenv/benchmark";
import type { Row } from "../dataset/row.ts";
import { columnText, instanceIdOf } from "../dataset/row.ts";
import { type Prediction, patchOf } from "./predictions.ts";

/** The solutions in the dataset as predictions, of the model `gold`. */
export function goldPredictions(rows: readonly Row[]): Prediction[] {
  return rows.map((row) => {
    const instanceId = instanceIdOf(row);
    const all = new Map<string, Json>([
      ["instance_id", instanceId],
      ["model_patch", columnText(row, "patch")],
      ["model_name_or_path", "gold"],
    ]);
    return { instanceId, all };
  });
}

/** Raises if a prediction is for an instance that the dataset does not have. */
export function checkPredictions(predictions: ReadonlyMap<string, Prediction>, rows: readonly Row[]): void {
  const known = new Set(rows.map(instanceIdOf));
  const unknown = [...predictions.keys()].filter((id) => !known.has(id));
  if (unknown.length > 0) throw new PyError("ValueError", `Some prediction IDs not found in dataset!\nMissing IDs:\n${unknown.join(" ")}`);
}

/** The rows to run: with a patch that is not empty, and without a report of this run. */
export function rowsToRun(
  rows: readonly Row[],
  predictions: ReadonlyMap<string, Prediction>,
  hasReport: (prediction: Prediction) => boolean,
): Row[] {
  return rows.filter((row) => {
    const prediction = predictions.get(instanceIdOf(row));
    if (prediction === undefined || hasReport(prediction)) return false;
    const patch = patchOf(prediction);
    return patch !== null && patch !== "";
  });
}
