import { type Field, InvalidValue, type Notes, type Parsed, type Shape, shown } from "./field.ts";

export function list<T>(item: Field<T>): Field<readonly T[]> {
  return {
    parse: (value, at, notes) => {
      if (!Array.isArray(value)) throw new InvalidValue(at, `expected an array, got ${shown(value)}`);
      return value.map((one, i) => item.parse(one, `${at}[${i}]`, notes));
    },
  };
}

export function map<T>(item: Field<T>): Field<Readonly<Record<string, T>>> {
  return {
    parse: (value, at, notes) => Object.fromEntries(entriesOf(value, at).map(([key, one]) => [key, item.parse(one, join(at, key), notes)])),
  };
}

/** A table with known keys. Other keys are ignored, unless they are forbidden. */
export function object<S extends Shape>(shape: S, unknownKeys: "ignore" | "forbid" = "ignore"): Field<Parsed<S>> {
  return {
    parse: (value, at, notes) => {
      const given = new Map(entriesOf(value, at));
      const entries = Object.entries(shape).map(([key, field]) => [key, parseKey(field, given, key, at, notes)] as const);
      for (const key of given.keys()) {
        if (Object.hasOwn(shape, key)) continue;
        if (unknownKeys === "forbid") throw new InvalidValue(join(at, key), "unknown key");
        notes?.ignored.push(join(at, key));
      }
      return Object.fromEntries(entries) as Parsed<S>;
    },
  };
}

/** The first alternative that fits, else the error of the second. */
export function either<A, B>(first: Field<A>, second: Field<B>): Field<A | B> {
  return {
    parse: (value, at, notes) => {
      try {
        return first.parse(value, at, notes);
      } catch (error) {
        if (!(error instanceof InvalidValue)) throw error;
        return second.parse(value, at, notes);
      }
    },
  };
}

export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function entriesOf(value: unknown, at: string): [string, unknown][] {
  if (!isTable(value)) throw new InvalidValue(at, `expected a table, got ${shown(value)}`);
  return Object.entries(value);
}

function parseKey<T>(field: Field<T>, given: ReadonlyMap<string, unknown>, key: string, at: string, notes?: Notes): T {
  const path = join(at, key);
  if (given.has(key)) return field.parse(given.get(key), path, notes);
  if (field.absent === undefined) throw new InvalidValue(path, "this key is required");
  return field.absent();
}

function join(at: string, key: string): string {
  return at === "" ? key : `${at}.${key}`;
}
