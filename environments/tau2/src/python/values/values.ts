import type { PyDate, PyDateTime } from "./datetime.ts";
import type { PyEnum } from "./enums.ts";

/**
 * Python's values, as tools see them and as they are hashed.
 *
 * | Python | here | |
 * |---|---|---|
 * | None, bool, str | null, boolean, string | |
 * | int | number, or bigint beyond 2^53 | `toInt` picks the form, so equal ints are `===` |
 * | float | `PyFloat` | an object: floats are rarer than ints in the data, and a missing wrapper is a type error instead of a silent `2` for `2.0` |
 * | list, tuple, dict | array, `PyTuple`, `Dict` | |
 * | model, enum member, date | `PyObject`, `PyEnum`, `PyDate`, `PyDateTime` | |
 *
 * Ints are plain numbers because a database has far more of them than floats; so a row needs no more memory than in plain JavaScript.
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

/** A key to look up in a dict; `lookup` refuses lists and dicts, which are not hashable. */
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

/** A literal that can be neither stored nor sent: bytes, a complex number, the ellipsis. */
export class PyOpaque {
  readonly type: string;
  readonly text: string;
  constructor(type: string, text: string) {
    this.type = type;
    this.text = text;
  }
}

/** A dict: a Map that can be frozen, because instances share the rows of a database. */
export class Dict<V extends PyValue = PyValue> extends Map<PyKey, V> {
  #isFrozen = false;

  /** Map's constructor would call `set` before the private fields of this class exist. */
  constructor(entries: Iterable<readonly [PyKey, V]> = []) {
    super();
    for (const [key, value] of entries) super.set(key, value);
  }

  static of<V extends PyValue>(record: Readonly<Record<string, V>>): Dict<V> {
    return new Dict(Object.entries(record));
  }

  /** A new dict with copies of the items. */
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
    this.#assertNotFrozen("all keys");
    super.clear();
  }

  #assertNotFrozen(key: PyKey): void {
    if (this.#isFrozen) throw new Error(`a shared row was written to (key ${String(key)}): take the row with edit() before changing it`);
  }
}

const isSafe = Number.isSafeInteger;

/** The canonical form of an int: a number while it is exact, else a bigint. */
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

/** A symbol, because a record may have a field called "model". */
export const MODEL = Symbol("model");

/** The part of a model that its instances use. */
export interface ObjectModel {
  readonly name: string;
  readonly module: string;
  create(fields: Readonly<Record<string, PyValue>>): PyObject;
  validate(input: PyValue): PyObject;
  copy(instance: PyObject, copyField: (value: PyValue) => PyValue): PyObject;
}

/** An instance of a model. Its own properties are its fields, in declaration order. */
export abstract class PyObject {
  /** On the prototype, so that a row has no properties but its fields. */
  declare readonly [MODEL]: ObjectModel;
}
