import { isList, isObject, type Json, PyError, readJson } from "@aenv/benchmark";
import { jsonLines } from "../python/json-lines.ts";

/** A patch that a model proposes for an instance. Other members of the file are kept in `all`. */
export interface Prediction {
  readonly instanceId: string;
  readonly all: ReadonlyMap<string, Json>;
}

/** Reads the text of a predictions file: a list, an object whose values are the predictions, or one object per line. */
export function readPredictions(text: string, extension: "json" | "jsonl"): Prediction[] {
  const items = extension === "jsonl" ? jsonLines(text).map(readJson) : listOf(readJson(text));
  return items.map((item) => {
    if (!isObject(item)) throw new PyError("ValueError", `a prediction is not an object: ${shown(item)}`);
    const id = item.get("instance_id");
    if (typeof id !== "string") throw new PyError("ValueError", "a prediction has no instance_id");
    return { instanceId: id, all: item };
  });
}

/** The form of a predictions file, by its name. */
export function predictionsExtension(path: string): "json" | "jsonl" {
  if (path.endsWith(".jsonl")) return "jsonl";
  if (path.endsWith(".json")) return "json";
  throw new PyError("ValueError", `predictions must be in a .json or .jsonl file, not in ${path}`);
}

/** Predictions by their instance; a later one replaces an earlier one of the same instance. */
export function byInstance(predictions: readonly Prediction[]): Map<string, Prediction> {
  return new Map(predictions.map((prediction) => [prediction.instanceId, prediction]));
}

/** The patch; null if there is none. Raises if the prediction does not say. */
export function patchOf({ instanceId, all }: Prediction): string | null {
  const patch = all.get("model_patch");
  if (patch === undefined) throw new PyError("KeyError", `the prediction for ${instanceId} has no model_patch`);
  if (patch !== null && typeof patch !== "string")
    throw new PyError("TypeError", `model_patch of the prediction for ${instanceId} is not a string`);
  return patch;
}

export function modelOf({ instanceId, all }: Prediction): string {
  const model = all.get("model_name_or_path");
  if (typeof model !== "string") throw new PyError("KeyError", `the prediction for ${instanceId} has no model_name_or_path`);
  return model;
}

function listOf(value: Json): readonly Json[] {
  if (isList(value)) return value;
  if (isObject(value)) return [...value.values()];
  throw new PyError("ValueError", "predictions must be a list, or an object with a prediction per instance");
}

function shown(value: Json): string {
  const text = isList(value) ? "a list" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
