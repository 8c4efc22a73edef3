import { compareText, typeError } from "@aenv/benchmark";
import { repr } from "./repr.ts";
import { PyDate, PyDateTime } from "./values/datetime.ts";
import { PyEnum } from "./values/enums.ts";
import { fieldsOf, MODEL, PyObject } from "./values/objects.ts";
import { typeName } from "./values/types.ts";
import { Dict, isNumber, PyFloat, type PyNumber, PyTuple, type PyValue } from "./values/values.ts";

/** Python's `==`: 1 equals 1.0 and True, an enum member equals its value, dicts are equal in any order. */
export function equals(a: PyValue, b: PyValue): boolean {
  if (a === b) return true;
  if (isNumber(a)) return isNumber(b) && compareNumbers(a, b) === 0;
  if (isNumber(b)) return false;
  const left = a instanceof PyEnum ? a.value : a;
  const right = b instanceof PyEnum ? b.value : b;
  if (left === null || right === null || typeof left !== "object" || typeof right !== "object") return left === right;
  if (Array.isArray(left)) return Array.isArray(right) && sameItems(left, right);
  if (left instanceof PyTuple) return right instanceof PyTuple && sameItems(left.items, right.items);
  if (left instanceof Dict) return right instanceof Dict && sameEntries(left, right);
  if (left instanceof PyDate) return right instanceof PyDate && left.isoformat() === right.isoformat();
  if (left instanceof PyDateTime) return right instanceof PyDateTime && left.isoformat() === right.isoformat();
  if (left instanceof PyObject && right instanceof PyObject) {
    return left[MODEL] === right[MODEL] && sameEntries(new Dict(fieldsOf(left)), new Dict(fieldsOf(right)));
  }
  return typeName(left) === typeName(right) && repr(left) === repr(right);
}

function sameItems(a: readonly PyValue[], b: readonly PyValue[]): boolean {
  return a.length === b.length && a.every((item, i) => equals(item, b[i] ?? null));
}

function sameEntries(a: Dict, b: Dict): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const other = lookup(b, key);
    if (other === undefined || !equals(value, other)) return false;
  }
  return true;
}

/** Negative, zero or positive; NaN when one side is nan. Exact between ints and floats. */
export function compareNumbers(a: PyNumber, b: PyNumber): number {
  const left = a instanceof PyFloat ? a.value : typeof a === "boolean" ? Number(a) : a;
  const right = b instanceof PyFloat ? b.value : typeof b === "boolean" ? Number(b) : b;
  // JavaScript compares bigint and number exactly.
  if (left < right) return -1;
  if (left > right) return 1;
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint equals the number of the same value
  return left == right ? 0 : Number.NaN;
}

export type Ordering = "<" | "<=" | ">" | ">=";

/** `a < b` and the other comparisons; raises for types without an order. */
export function isOrdered(a: PyValue, operator: Ordering, b: PyValue): boolean {
  const order = compare(a, b);
  if (order === null) throw typeError(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
  switch (operator) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

function compare(a: PyValue, b: PyValue): number | null {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b);
  const left = a instanceof PyEnum ? a.value : a;
  const right = b instanceof PyEnum ? b.value : b;
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  if (left instanceof PyDate && right instanceof PyDate) return compareText(left.isoformat(), right.isoformat());
  if (left instanceof PyDateTime && right instanceof PyDateTime) return compareText(left.isoformat(), right.isoformat());
  if (!Array.isArray(left) || !Array.isArray(right)) return null;
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const one = left[i] ?? null;
    const other = right[i] ?? null;
    if (!equals(one, other)) return compare(one, other);
  }
  return left.length - right.length;
}

/** `dict[key]` by Python's equality; undefined if there is no such key. Raises for lists and dicts, which cannot be keys. */
export function lookup<V extends PyValue>(dict: Dict<V>, key: PyValue): V | undefined {
  assertHashable(key);
  const direct = dict.get(key instanceof PyEnum && !dict.has(key) ? key.value : key);
  if (direct !== undefined) return direct;
  for (const [candidate, value] of dict) {
    // `get` has already compared equal strings; skipping them here keeps lookups in long tables fast.
    if (typeof candidate === "string" ? typeof key === "object" && equals(candidate, key) : equals(candidate, key)) return value;
  }
  return undefined;
}

export function assertHashable(key: PyValue): void {
  if (Array.isArray(key) || key instanceof Dict) throw typeError(`unhashable type: '${typeName(key)}'`);
  if (key instanceof PyTuple) for (const item of key.items) assertHashable(item);
}

/** `item in list`. */
export function isIn(item: PyValue, list: Iterable<PyValue>): boolean {
  for (const candidate of list) if (equals(candidate, item)) return true;
  return false;
}

/** `bool(value)`. */
export function isTruthy(value: PyValue): boolean {
  if (value === null || value === false || value === 0 || value === "") return false;
  if (value instanceof PyFloat) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Dict) return value.size > 0;
  if (value instanceof PyTuple) return value.items.length > 0;
  if (value instanceof PyEnum) return value.value !== "";
  return true;
}
