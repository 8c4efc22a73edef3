import { attributeError } from "./errors.ts";
import type { PyValue } from "./values.ts";

/** A key of its own kind: records may well have a field called "model". */
export const MODEL = Symbol("model");

/** What an object needs of its model. */
export interface ObjectModel {
  readonly name: string;
  readonly module: string;
  create(fields: Readonly<Record<string, PyValue>>): PyObject;
  validate(input: PyValue): PyObject;
  copy(instance: PyObject, copyField: (value: PyValue) => PyValue): PyObject;
}

/** An instance of a model: its fields are its own properties, in the order in which the model declares them. */
export abstract class PyObject {
  /** Stands on the prototype, so that a row holds nothing but its fields. */
  declare readonly [MODEL]: ObjectModel;
}

/** Sets a field as Python does: an assignment is never validated, so any value may end up in any field. */
export function assign<T extends PyObject>(object: T, field: keyof T & string, value: PyValue): void {
  (object as unknown as Record<string, PyValue>)[field] = value;
}

/** Reads a field that may not be there, because a toolkit was handed another database than it was made for. */
export function attribute<T extends PyObject, K extends keyof T & string>(object: T, field: K): T[K] {
  if (!Object.hasOwn(object, field)) throw attributeError(object[MODEL].name, field);
  return object[field];
}

export function fieldsOf(object: PyObject): [string, PyValue][] {
  return Object.entries(object) as [string, PyValue][];
}
