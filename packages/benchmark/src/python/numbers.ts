import { typeError, valueError } from "./errors.ts";
import { isSpace } from "./text.ts";

const DIGITS = "\\d+(?:_\\d+)*";
const FLOAT = new RegExp(`^[+-]?(?:(?:${DIGITS})?\\.${DIGITS}|${DIGITS}\\.?)(?:e[+-]?${DIGITS})?$|^[+-]?(?:inf(?:inity)?|nan)$`, "i");

/** Python converts no text with more digits into an integer. */
export const MAX_DIGITS = 4300;

/** `float(text)`: null where Python raises. Underscores, `nan`, `inf` and the digits of every script are numbers. */
export function parseFloatText(text: string): number | null {
  const plain = asciiDigits(skipSpaces(text));
  if (!FLOAT.test(plain)) return null;
  const lower = plain.toLowerCase().replaceAll("_", "");
  if (lower.includes("nan")) return Number.NaN;
  if (lower.includes("inf")) return lower.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(lower);
}

/** `float(value)` of a text. Raises ValueError, and TypeError for a value that is no text. */
export function toFloat(value: unknown): number {
  if (typeof value !== "string") throw typeError(`'${String(value)}' is not the text of a number`);
  const number = parseFloatText(value);
  if (number === null) throw valueError(`'${value}' is not a number`);
  return number;
}

/** `int(text)` of an optional sign and decimal digits of any script, as far as it is needed: whether it is 0. */
export function isZero(text: string): boolean {
  const digits = [...asciiDigits(text)].filter((char) => char !== "-");
  if (digits.length > MAX_DIGITS) throw valueError(`an integer of ${digits.length} digits is too long`);
  return digits.every((digit) => digit === "0");
}

/** `repr` of a float: the shortest digits that round-trip, positional from 1e-4 up to 1e16, always with a point or an exponent. */
export function floatRepr(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa = "", exponentText = "0"] = Math.abs(value).toExponential().split("e");
  const exponent = Number(exponentText);
  const digits = mantissa.replace(".", "");
  const sign = value < 0 ? "-" : "";
  if (exponent >= 16 || exponent < -4) {
    const tail = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${sign}${digits[0]}${tail}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

/** What Python counts as digits beside the decimal ones: superscripts, subscripts, digits in circles and the like. */
const OTHER_DIGITS =
  "\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}";
const ALL_DIGITS = new RegExp(`^[\\p{Nd}${OTHER_DIGITS}]+$`, "u");

/** `text.isdigit()` */
export function isDigits(text: string): boolean {
  return ALL_DIGITS.test(text);
}

/** Without the spaces that `float` skips: among the ASCII control characters, fewer than `str.strip` does. */
function skipSpaces(text: string): string {
  const isSkipped = (code: number): boolean => isSpace(code) && (code < 0x1c || code > 0x1f);
  let [start, end] = [0, text.length];
  while (start < end && isSkipped(text.charCodeAt(start))) start++;
  while (end > start && isSkipped(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Decimal digits of any script as ASCII digits. Unicode has them in runs of ten, each from zero to nine; some runs follow each other. */
function asciiDigits(text: string): string {
  if (!/[\x80-\uffff]/.test(text)) return text;
  return text.replace(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    let start = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start--;
    return String((code - start) % 10);
  });
}
