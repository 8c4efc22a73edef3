import { MAX_DIGITS } from "./numbers.ts";

// What pydantic takes a text for in its lax mode, after white space at its ends. Its white space is that of Unicode, which Python's is not.

const SPACES = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
const DIGITS = "[0-9](?:_?[0-9])*";
const INT = new RegExp(`^${SPACES}([+-]?)(${DIGITS})(?:\\.0+)?${SPACES}$`);
const FLOAT = new RegExp(
  `^${SPACES}([+-]?)(?:((?:${DIGITS}\\.?(?:${DIGITS})?|\\.${DIGITS})(?:[eE][+-]?${DIGITS})?)|(inf|infinity|nan))${SPACES}$`,
  "i",
);
const TRUE_WORDS = new Set(["1", "on", "t", "true", "y", "yes"]);
const FALSE_WORDS = new Set(["0", "off", "f", "false", "n", "no"]);

/** Null for a text that is not a whole number. */
export function laxInt(text: string): bigint | "too long" | null {
  const [, sign, digits] = INT.exec(text) ?? [];
  if (digits === undefined) return null;
  const plain = digits.replaceAll("_", "");
  if (plain.length > MAX_DIGITS) return "too long";
  return sign === "-" ? -BigInt(plain) : BigInt(plain);
}

/** Null for a text that is not a number. */
export function laxFloat(text: string): number | null {
  const [, sign, digits, name] = FLOAT.exec(text) ?? [];
  if (digits === undefined && name === undefined) return null;
  const size = digits !== undefined ? Number(digits.replaceAll("_", "")) : /nan/i.test(name ?? "") ? Number.NaN : Infinity;
  return sign === "-" ? -size : size;
}

/** Null for a text that is neither. */
export function laxBool(text: string): boolean | null {
  const lower = text.toLowerCase();
  return TRUE_WORDS.has(lower) ? true : FALSE_WORDS.has(lower) ? false : null;
}
