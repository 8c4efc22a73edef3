import { compareText, floatRepr, type JsonShape, layOutJson, quoteJson, typeError, valueError } from "@aenv/benchmark";
import { str } from "../repr.ts";
import { PyDate, PyDateTime } from "../values/datetime.ts";
import { PyEnum } from "../values/enums.ts";
import { fieldsOf, PyObject } from "../values/objects.ts";
import { typeName, typeRepr } from "../values/types.ts";
import { Dict, PyFloat, PyOpaque, PyTuple, type PyValue } from "../values/values.ts";

export interface JsonStyle {
  readonly sortKeys?: boolean;
  /** Spaces per level; one line if not given. */
  readonly indent?: number;
}

/** `json.dumps(value, default=str)`; a model is written as its `model_dump()`. */
export function writeJson(value: PyValue, style: JsonStyle = {}): string {
  return layOutJson(value, (one) => shapeOf(one, style.sortKeys === true), style.indent);
}

/** A tool's result as the agent gets it: strings unchanged, other values as JSON in which numbers outside models are strings. */
export function toJsonStr(value: PyValue): string {
  if (typeof value === "string") return value;
  if (value instanceof PyEnum) return value.value;
  return writeJson(stringified(value));
}

function stringified(value: PyValue): PyValue {
  if (value === null || typeof value === "string" || value instanceof PyObject || value instanceof PyEnum) return value;
  if (typeof value !== "object" || value instanceof PyFloat) return str(value);
  if (Array.isArray(value)) return value.map(stringified);
  if (value instanceof PyTuple) return value.items.map(stringified);
  if (value instanceof Dict) return new Dict([...value].map(([key, item]) => [key, stringified(item)]));
  if (value instanceof PyDate || value instanceof PyDateTime) return value.isoformat();
  throw valueError(`Unsupported type: ${typeRepr(value)}`);
}

function shapeOf(value: PyValue, sort: boolean): JsonShape<PyValue> {
  if (value === null) return "null";
  switch (typeof value) {
    case "boolean":
    case "number":
    case "bigint":
      return String(value);
    case "string":
      return quoteJson(value);
  }
  if (value instanceof PyFloat) return writeFloat(value.value);
  if (value instanceof PyEnum) return quoteJson(value.value);
  if (Array.isArray(value)) return list(value);
  if (value instanceof PyTuple) return list(value.items);
  if (value instanceof Dict || value instanceof PyObject) {
    const entries: [PyValue, PyValue][] = value instanceof Dict ? [...value] : fieldsOf(value);
    if (sort) entries.sort(([a], [b]) => compareKeys(a, b));
    return { open: "{", close: "}", parts: entries.map(([key, item]) => [`${quoteJson(keyText(key))}: `, item]) };
  }
  if (value instanceof PyOpaque) throw typeError(`Object of type ${value.type} is not JSON serializable`);
  return quoteJson(str(value));
}

function list(items: readonly PyValue[]): JsonShape<PyValue> {
  return { open: "[", close: "]", parts: items.map((item) => ["", item]) };
}

function keyText(key: PyValue): string {
  if (typeof key === "string") return key;
  if (key === null || typeof key === "boolean" || typeof key === "number" || typeof key === "bigint") return String(key);
  if (key instanceof PyFloat) return floatRepr(key.value);
  if (key instanceof PyEnum) return key.value;
  throw typeError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function compareKeys(a: PyValue, b: PyValue): number {
  const left = a instanceof PyEnum ? a.value : a;
  const right = b instanceof PyEnum ? b.value : b;
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  if (typeof left === "string" || typeof right === "string" || left === null || right === null) {
    throw typeError(`'<' not supported between instances of '${typeName(b)}' and '${typeName(a)}'`);
  }
  return Number(left) - Number(right);
}

function writeFloat(value: number): string {
  if (Number.isFinite(value)) return floatRepr(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}
