import { attributeError } from "@aenv/benchmark";
import { MODEL, type PyObject, type PyValue } from "./values.ts";

export { MODEL, PyObject } from "./values.ts";

/** Sets a field as Python does: assignments are not validated, so a field can get any value. */
export function assign<T extends PyObject>(object: T, field: keyof T & string, value: PyValue): void {
  Object.assign(object, { [field]: value });
}

/** Reads a field that may be missing, because a toolkit can be given a database of another model. */
export function attribute<T extends PyObject, K extends keyof T & string>(object: T, field: K): T[K] {
  if (!Object.hasOwn(object, field)) throw attributeError(object[MODEL].name, field);
  return object[field];
}

export function fieldsOf(object: PyObject): [string, PyValue][] {
  return Object.entries(object) as [string, PyValue][];
}
