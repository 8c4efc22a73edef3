/** An exact fraction: `n / d`, where `d` is positive. */
export interface Rational {
  readonly n: bigint;
  readonly d: bigint;
}

/** A longer text, or a larger exponent, is not a number that anybody answers; it would only cost time. */
const MAX_CHARACTERS = 400;
const MAX_EXPONENT = 400;

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?$/i;
const GROUPED = /^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$/;

/** The exact value of a decimal number or of a fraction of two; null if the text is none. `1,234` is 1234, and a comma is never decimal. */
export function parseRational(text: string): Rational | null {
  if (text.length > MAX_CHARACTERS) return null;
  const trimmed = text.trim().replaceAll("\u2212", "-");
  const slash = trimmed.indexOf("/");
  if (slash < 0) return parseDecimal(trimmed);
  const above = parseDecimal(trimmed.slice(0, slash).trimEnd());
  const below = parseDecimal(trimmed.slice(slash + 1).trimStart());
  if (above === null || below === null || below.n === 0n) return null;
  const [n, d] = [above.n * below.d, above.d * below.n];
  return d < 0n ? { n: -n, d: -d } : { n, d };
}

function parseDecimal(text: string): Rational | null {
  const match = DECIMAL.exec(GROUPED.test(text) ? text.replaceAll(",", "") : text);
  if (match === null) return null;
  const [, sign = "", whole = "", part = "", exponentText = "0"] = match;
  const exponent = Number(exponentText) - part.length;
  if (whole + part === "" || Math.abs(Number(exponentText)) > MAX_EXPONENT) return null;
  const digits = BigInt(whole + part) * (sign === "-" ? -1n : 1n);
  return exponent < 0 ? { n: digits, d: 10n ** BigInt(-exponent) } : { n: digits * 10n ** BigInt(exponent), d: 1n };
}

/** Whether two numbers differ by at most the larger of the absolute tolerance and `relative` of the second. */
export function isWithin(value: Rational, wanted: Rational, absolute: Rational, relative: Rational): boolean {
  const difference = abs(value.n * wanted.d - wanted.n * value.d);
  const scale = value.d * wanted.d;
  const isAtMost = (limit: Rational) => difference * limit.d <= limit.n * scale;
  return isAtMost(absolute) || isAtMost({ n: abs(wanted.n) * relative.n, d: wanted.d * relative.d });
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}
