import { laxBool, laxFloat, laxInt } from "@aenv/benchmark";
import { type Field, InvalidValue, shown } from "./field.ts";

// The conversions are those of pydantic in its lax mode, which the reference uses for every document.
// Whole numbers of TOML arrive as bigint, so that 1 and 1.0 stay apart.

/** Larger floats are not taken for ints. */
const LARGEST_FLOAT_AS_INT = 2 ** 63;

export const text: Field<string> = {
  parse: (value, at) => {
    if (typeof value === "string") return value;
    throw new InvalidValue(at, `expected a string, got ${shown(value)}`);
  },
};

export const int: Field<number> = {
  parse: (value, at) => {
    const number = toInt(value);
    if (number === null) throw new InvalidValue(at, `expected a whole number, got ${shown(value)}`);
    return number;
  },
};

export const float: Field<number> = {
  parse: (value, at) => {
    const number = toFloat(value);
    if (number === null) throw new InvalidValue(at, `expected a number, got ${shown(value)}`);
    return number;
  },
};

export const bool: Field<boolean> = {
  parse: (value, at) => {
    const found = toBool(value);
    if (found === null) throw new InvalidValue(at, `expected true or false, got ${shown(value)}`);
    return found;
  },
};

/** One of the given strings. */
export function oneOf<const T extends string>(...allowed: readonly T[]): Field<T> {
  return {
    parse: (value, at) => {
      const found = allowed.find((one) => one === value);
      if (found === undefined) throw new InvalidValue(at, `expected one of ${allowed.join(", ")}, got ${shown(value)}`);
      return found;
    },
  };
}

/** A string is kept; other values must be whole numbers. */
export const textOrInt: Field<string | number> = {
  parse: (value, at) => {
    const found = typeof value === "string" ? value : toInt(value);
    if (found === null) throw new InvalidValue(at, `expected a string or a whole number, got ${shown(value)}`);
    return found;
  },
};

export const anything: Field<unknown> = { parse: (value) => value };

function toInt(value: unknown): number | null {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) < LARGEST_FLOAT_AS_INT ? value + 0 : null;
  const parsed = typeof value === "string" ? laxInt(value) : null;
  return typeof parsed === "bigint" ? Number(parsed) : null;
}

function toFloat(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  return typeof value === "string" ? laxFloat(value) : null;
}

function toBool(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  if (typeof value === "string") return laxBool(value);
  if (typeof value !== "number" && typeof value !== "bigint") return null;
  return Number(value) === 0 ? false : Number(value) === 1 ? true : null;
}
