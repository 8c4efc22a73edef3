import { RaisedError } from "./raised.ts";
import { strip } from "./text.ts";

const DIGIT = /^\p{Nd}$/u;
const FLOAT = /^[+-]?(?:(?:\d+(?:_\d+)*)?\.\d+(?:_\d+)*|\d+(?:_\d+)*\.?)(?:[eE][+-]?\d+(?:_\d+)*)?$/;
const NAMED = /^[+-]?(?:inf(?:inity)?|nan)$/i;

/** Python refuses to convert longer integers. */
const MAX_DIGITS = 4300;

/** `int(text)` of an optional sign and decimal digits of any script, as far as it is needed: whether it is 0. */
export function isZero(text: string): boolean {
  const digits = [...asciiDigits(text)].filter((char) => char !== "-");
  if (digits.length > MAX_DIGITS) throw new RaisedError("ValueError", `an integer of ${digits.length} digits is too long`);
  return digits.every((digit) => digit === "0");
}

/** `float(text)` */
export function parseFloatText(text: unknown): number {
  if (typeof text !== "string") throw new RaisedError("TypeError", `'${String(text)}' is not the text of a number`);
  const plain = asciiDigits(strip(text));
  if (NAMED.test(plain))
    return /nan/i.test(plain) ? Number.NaN : plain.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (!FLOAT.test(plain)) throw new RaisedError("ValueError", `'${text}' is not a number`);
  return Number(plain.replaceAll("_", ""));
}

/** Decimal digits of other scripts as ASCII digits. */
function asciiDigits(text: string): string {
  return /[\x80-\uffff]/.test(text) ? text.replace(/\p{Nd}/gu, (digit) => String(digitValue(digit))) : text;
}

/** In Unicode, the digits 0 to 9 of a script are consecutive, and some scripts follow each other without a gap. */
function digitValue(digit: string): number {
  const code = digit.codePointAt(0) ?? 0;
  let preceding = 0;
  while (code - preceding > 0 && DIGIT.test(String.fromCodePoint(code - preceding - 1))) preceding++;
  return preceding % 10;
}
