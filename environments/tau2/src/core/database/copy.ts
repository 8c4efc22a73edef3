import { fieldsOf, MODEL, PyObject } from "../../python/values/objects.ts";
import { Dict, PyTuple, type PyValue } from "../../python/values/values.ts";

/** Copies by original, so that two references to one object become two references to one copy. */
export type Memo = Map<object, PyValue>;

/** A deep copy. A table's copy shares the rows that were not edited, which are frozen. */
export function copy<T extends PyValue>(value: T, memo: Memo = new Map()): T {
  const copyItem = (item: PyValue): PyValue => {
    if (item === null || typeof item !== "object") return item;
    const known = memo.get(item);
    if (known !== undefined) return known;
    const copied = copyObject(item, copyItem);
    // Immutable values are their own copy and need no entry.
    if (copied !== item) memo.set(item, copied);
    return copied;
  };
  return copyItem(value) as T;
}

function copyObject(value: PyValue & object, copyItem: (item: PyValue) => PyValue): PyValue {
  if (Array.isArray(value)) return value.map(copyItem);
  if (value instanceof Dict) return value.copyWith(copyItem);
  if (value instanceof PyTuple) return new PyTuple(value.items.map(copyItem));
  if (!(value instanceof PyObject)) return value;
  return value[MODEL].copy(value, copyItem);
}

/** Freezes a value deeply, so that a tool that writes to a shared row fails instead of changing it for other instances. */
export function freeze(value: PyValue): void {
  if (value === null || typeof value !== "object" || Object.isFrozen(value)) return;
  if (Array.isArray(value)) {
    value.forEach(freeze);
    Object.freeze(value);
  } else if (value instanceof Dict) {
    for (const item of value.values()) freeze(item);
    value.freeze();
  } else if (value instanceof PyObject) {
    for (const [, field] of fieldsOf(value)) freeze(field);
    Object.freeze(value);
  }
}
