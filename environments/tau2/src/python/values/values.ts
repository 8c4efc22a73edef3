import type { PyDate, PyDateTime } from "./datetime.ts";
import type { PyEnum } from "./enums.ts";

/**
 * Python's values, as tools see them and as they are hashed.
 *
 * | Python | here | |
 * |---|---|---|
 * | None, bool, str | null, boolean, string | |
 * | int | number, or bigint beyond 2^53 | `toInt` picks the form, so equal ints are `===` |
 * | float | `PyFloat` | boxed: floats are the rarer kind in the data, and a forgotten sandbox is a type error, not a silent `2` for `2.0` |
 * | list, tuple, dict | array, `PyTuple`, `Dict` | |
 * | model, enum member, date | `PyObject`, `PyEnum`, `PyDate`, `PyDateTime` | |
 *
 * Ints stay plain numbers because a database holds far more of them than floats; a row costs what it costs in plain JavaScript.
 */
export type PyValue =
  | null
  | boolean
  | PyInt
  | string
  | PyFloat
  | PyValue[]
  | Dict
  | PyTuple
  | PyObject
  | PyEnum
  | PyDate
  | PyDateTime
  | PyOpaque;

export type PyInt = number | bigint;
export type PyNumber = boolean | PyInt | PyFloat;

/** What a dict may be asked for; lists and dicts are not hashable and are refused by `lookup`. */
export type PyKey = PyValue;

export class PyFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class PyTuple {
  readonly items: readonly PyValue[];
  constructor(items: readonly PyValue[]) {
    this.items = items;
  }
}

/** A value that can be written as a literal but neither stored nor sent: bytes, complex numbers, the ellipsis. */
export class PyOpaque {
  readonly type: string;
  readonly text: string;
  constructor(type: string, text: string) {
    this.type = type;
    this.text = text;
  }
}

/** A dict: a Map that can be closed, because the rows of a shared database must not change under others. */
export class Dict<V extends PyValue = PyValue> extends Map<PyKey, V> {
  #isFrozen = false;

  /** Filled here and not by Map's constructor, which would call `set` before this class is complete. */
  constructor(entries: Iterable<readonly [PyKey, V]> = []) {
    super();
    for (const [key, value] of entries) super.set(key, value);
  }

  static of<V extends PyValue>(record: Readonly<Record<string, V>>): Dict<V> {
    return new Dict(Object.entries(record));
  }

  /** A dict of its own with copies of the items. */
  copyWith(copyItem: (item: V) => V): Dict<V> {
    const copied = new Dict<V>();
    for (const [key, item] of this) copied.set(key, copyItem(item));
    return copied;
  }

  freeze(): this {
    this.#isFrozen = true;
    return this;
  }

  override set(key: PyKey, value: V): this {
    this.#assertNotFrozen(key);
    return super.set(key, value);
  }

  override delete(key: PyKey): boolean {
    this.#assertNotFrozen(key);
    return super.delete(key);
  }

  override clear(): void {
    this.#assertNotFrozen("everything");
    super.clear();
  }

  #assertNotFrozen(key: PyKey): void {
    if (this.#isFrozen) throw new Error(`a shared row was written to (key ${String(key)}): take the row with edit() before changing it`);
  }
}

const isSafe = Number.isSafeInteger;

/** The one form of an int: a number while it is exact, else a bigint. */
export function toInt(value: number | bigint): PyInt {
  if (typeof value === "number") return isSafe(value) ? value + 0 : toInt(BigInt(value));
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

export function float(value: number): PyFloat {
  return new PyFloat(value);
}

export function isInt(value: PyValue): value is PyInt {
  return typeof value === "number" || typeof value === "bigint";
}

export function isNumber(value: PyValue): value is PyNumber {
  return isInt(value) || value instanceof PyFloat || typeof value === "boolean";
}

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
