import { SPACE_CLASS } from "./text.ts";

// Of the ASCII control characters, `float` skips fewer than `str.strip`.
const AROUND = new RegExp(`^(?:(?![\\x1c-\\x1f])[${SPACE_CLASS}])+|(?:(?![\\x1c-\\x1f])[${SPACE_CLASS}])+$`, "g");
const DIGITS = "[0-9](?:_?[0-9])*";
const FLOAT = new RegExp(`^[+-]?(?:(?:${DIGITS}\\.?(?:${DIGITS})?|\\.${DIGITS})(?:e[+-]?${DIGITS})?|inf(?:inity)?|nan)$`, "i");

/** `float(text)`: null where Python raises. Underscores, `nan`, `inf` and the digits of every script are numbers. */
export function parseFloatText(text: string): number | null {
  const plain = asciiDigits(text.replace(AROUND, ""));
  if (!FLOAT.test(plain)) return null;
  const lower = plain.toLowerCase().replaceAll("_", "");
  if (lower.includes("nan")) return Number.NaN;
  if (lower.includes("inf")) return lower.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(lower);
}

/** Decimal digits of any script as ASCII digits. Unicode has them in runs of ten, each from zero to nine. */
function asciiDigits(text: string): string {
  return text.replace(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    let start = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start--;
    return String((code - start) % 10);
  });
}

/** The shortest text of a float that Python prints, for keys such as `1.0`. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const [, sign = "", digits = "", exponentText = "0"] = /^(-?)([\d.]+)e([+-]\d+)$/.exec(value.toExponential()) ?? [];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) return `${sign}${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const plain = exponent < 0 ? `0.${"0".repeat(-exponent - 1)}${digits.replace(".", "")}` : String(Math.abs(value));
  return `${sign}${plain.includes(".") ? plain : `${plain}.0`}`;
}
