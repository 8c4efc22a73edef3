import { type Field, InvalidValue, shown } from "./field.ts";

// The conversions are those of pydantic in its lax mode, which the reference uses for every document.
// Whole numbers of TOML arrive as bigint, so that 1 and 1.0 stay apart.

const SPACES = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
const INT_TEXT = new RegExp(`^${SPACES}([+-]?)([0-9]+(?:_[0-9]+)*)(?:\\.0+)?${SPACES}$`);
const DIGITS = "[0-9](?:_?[0-9])*";
const FLOAT_TEXT = new RegExp(
  `^${SPACES}([+-]?)(?:((?:${DIGITS}\\.?(?:${DIGITS})?|\\.${DIGITS})(?:[eE][+-]?${DIGITS})?)|(inf|infinity|nan))${SPACES}$`,
  "i",
);
/** Python converts no longer text into an int. */
const MOST_DIGITS = 4300;
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
  if (typeof value !== "string") return null;
  const [, sign, digits] = INT_TEXT.exec(value) ?? [];
  if (digits === undefined || digits.length > MOST_DIGITS) return null;
  const number = Number(digits.replaceAll("_", ""));
  return sign === "-" ? 0 - number : number;
}

export function toFloat(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return null;
  const [, sign, digits, name] = FLOAT_TEXT.exec(value) ?? [];
  const size =
    digits !== undefined ? Number(digits.replaceAll("_", "")) : name === undefined ? null : /nan/i.test(name) ? Number.NaN : Infinity;
  return size === null ? null : sign === "-" ? -size : size;
}

function toBool(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  if (typeof value === "string") {
    const lower = value.toLowerCase();
    if (["1", "true", "t", "yes", "y", "on"].includes(lower)) return true;
    return ["0", "false", "f", "no", "n", "off"].includes(lower) ? false : null;
  }
  if (typeof value !== "number" && typeof value !== "bigint") return null;
  return Number(value) === 0 ? false : Number(value) === 1 ? true : null;
}
