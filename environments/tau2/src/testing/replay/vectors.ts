import { readVectors } from "@aenv/benchmark/testing";
import { readJson } from "../../python/json/reader.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";

export type Vectors =
  | { readonly format: "tasks" | "random" | "operations"; readonly records: readonly Dict[] }
  | { readonly format: "misc"; readonly groups: Dict }
  | { readonly format: "unknown"; readonly why: string };

/** Reads a file of vectors and detects its format. */
export function readFormat(path: string): Vectors {
  return recognize(readVectors(path, readJson));
}

function recognize(values: readonly PyValue[]): Vectors {
  const records = values.filter((value) => value instanceof Dict);
  if (records.length === values.length && records.length > 0) {
    if (records.every((record) => record.has("task_id") && record.has("steps"))) return { format: "tasks", records };
    if (records.every((record) => record.has("calls"))) return { format: "random", records };
    if (records.every((record) => record.has("ops"))) return { format: "operations", records };
    const [groups] = records;
    if (records.length === 1 && groups !== undefined) return { format: "misc", groups };
  }
  const [list] = values;
  // Triples of expression, output and exception class.
  if (values.length === 1 && Array.isArray(list) && list.every((item) => Array.isArray(item) && item.length === 3)) {
    return { format: "misc", groups: new Dict([["calculate", list]]) };
  }
  return { format: "unknown", why: "its records are neither tasks, nor episodes, nor groups of unit vectors" };
}

/** Typed access to the members of a record. */
export function listAt(record: Dict, key: string): readonly PyValue[] {
  const value = record.get(key);
  return Array.isArray(value) ? value : [];
}

export function dictAt(record: Dict, key: string): Dict {
  const value = record.get(key);
  return value instanceof Dict ? value : new Dict();
}
