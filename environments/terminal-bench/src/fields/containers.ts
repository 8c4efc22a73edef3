import { type Field, InvalidValue, type Parsed, type Shape, shown } from "./field.ts";

export function list<T>(item: Field<T>): Field<readonly T[]> {
  return {
    parse: (value, at) => {
      if (!Array.isArray(value)) throw new InvalidValue(at, `expected an array, got ${shown(value)}`);
      return value.map((one, i) => item.parse(one, `${at}[${i}]`));
    },
  };
}

export function map<T>(item: Field<T>): Field<Readonly<Record<string, T>>> {
  return { parse: (value, at) => Object.fromEntries(entriesOf(value, at).map(([key, one]) => [key, item.parse(one, join(at, key))])) };
}

/** A table with known keys. Other keys are ignored, unless they are forbidden. */
export function object<S extends Shape>(shape: S, unknownKeys: "ignore" | "forbid" = "ignore"): Field<Parsed<S>> {
  return {
    parse: (value, at) => {
      const given = new Map(entriesOf(value, at));
      const entries = Object.entries(shape).map(([key, field]) => [key, parseKey(field, given, key, at)] as const);
      if (unknownKeys === "forbid") {
        for (const key of given.keys()) if (!Object.hasOwn(shape, key)) throw new InvalidValue(join(at, key), "unknown key");
      }
      return Object.fromEntries(entries) as Parsed<S>;
    },
  };
}

/** The first alternative that fits. Its own message is shown when there is only one of the value's kind. */
export function either<A, B>(first: Field<A>, second: Field<B>): Field<A | B> {
  return {
    parse: (value, at) => {
      try {
        return first.parse(value, at);
      } catch (error) {
        if (!(error instanceof InvalidValue)) throw error;
        return second.parse(value, at);
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

function parseKey<T>(field: Field<T>, given: ReadonlyMap<string, unknown>, key: string, at: string): T {
  const path = join(at, key);
  if (given.has(key)) return field.parse(given.get(key), path);
  if (field.absent === undefined) throw new InvalidValue(path, "this key is required");
  return field.absent();
}

function join(at: string, key: string): string {
  return at === "" ? key : `${at}.${key}`;
}
