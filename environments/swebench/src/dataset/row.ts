import { type Json, type JsonObject, PyError } from "@aenv/benchmark";

/** A row of a dataset: its columns by name. */
export type Row = JsonObject;

export function instanceIdOf(row: Row): string {
  return columnText(row, "instance_id");
}

/** A column that must be there and be a string. */
export function columnText(row: Row, column: string): string {
  const value = row.get(column);
  if (typeof value === "string") return value;
  const id = row.get("instance_id");
  const which = typeof id === "string" ? `the row of ${id}` : "a row";
  const problem = value === undefined ? `has no column '${column}'` : `has a column '${column}' that is not a string`;
  throw new PyError(value === undefined ? "KeyError" : "TypeError", `${which} ${problem}`);
}

/** Values of other readers, such as those of Parquet and YAML, as JSON. */
export function toJson(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === "string" || typeof value === "boolean" || typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(toJson);
  if (ArrayBuffer.isView(value)) return Array.from(value as ArrayBufferView & ArrayLike<number>);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return new Map(entries.map(([key, member]) => [String(key), toJson(member)]));
}
