import { PyError, typeError, valueError } from "@aenv/benchmark";
import { typeName } from "./values/types.ts";
import { isNumber, PyFloat, type PyInt, type PyNumber, type PyValue, toInt } from "./values/values.ts";

/** The exact value of a finite double as `numerator / 2^shift`. */
export function exactRatio(value: number): { numerator: bigint; shift: bigint } {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const mantissa = exponent === 0 ? fraction : fraction | 0x10000000000000n;
  const power = BigInt((exponent === 0 ? 1 : exponent) - 1075);
  const signed = bits >> 63n === 1n ? -mantissa : mantissa;
  return power >= 0n ? { numerator: signed << power, shift: 0n } : { numerator: signed, shift: -power };
}

/** The double nearest to `numerator / denominator`, ties to even; infinite when it is out of range. */
export function nearestDouble(numerator: bigint, denominator: bigint): number {
  if (numerator === 0n) return 0;
  const isNegative = numerator < 0n !== denominator < 0n;
  const top = numerator < 0n ? -numerator : numerator;
  const bottom = denominator < 0n ? -denominator : denominator;
  // Scaled so that the quotient has 55 or 56 bits: 53 are kept, the others decide the rounding.
  let exponent = bitLength(top) - bitLength(bottom) - 55;
  if (exponent < -1074) exponent = -1074;
  const scaledTop = exponent < 0 ? top << BigInt(-exponent) : top;
  const scaledBottom = exponent > 0 ? bottom << BigInt(exponent) : bottom;
  let quotient = scaledTop / scaledBottom;
  let isExact = quotient * scaledBottom === scaledTop;
  const extra = bitLength(quotient) - 53;
  if (extra > 0) {
    const drop = BigInt(extra);
    const half = 1n << (drop - 1n);
    const rest = quotient & ((1n << drop) - 1n);
    quotient >>= drop;
    exponent += extra;
    if (rest > half || (rest === half && (!isExact || (quotient & 1n) === 1n))) quotient += 1n;
  } else {
    const twice = (scaledTop - quotient * scaledBottom) * 2n;
    isExact = twice === 0n;
    if (!isExact && (twice > scaledBottom || (twice === scaledBottom && (quotient & 1n) === 1n))) quotient += 1n;
  }
  const magnitude = scaleByPowerOfTwo(Number(quotient), exponent);
  return isNegative ? -magnitude : magnitude;
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(16).length * 4 - Math.clz32(Number.parseInt(value.toString(16)[0] ?? "0", 16)) + 28;
}

/** In two steps: 2^exponent alone may be out of range although the product is not. */
function scaleByPowerOfTwo(value: number, exponent: number): number {
  const step = Math.trunc(exponent / 2);
  return value * 2 ** step * 2 ** (exponent - step);
}

/** `value * 10^digits` rounded half-even on the exact binary value. */
function roundedScaled(value: number, digits: number): bigint {
  const { numerator, shift } = exactRatio(value);
  const scaled = numerator * 10n ** BigInt(digits);
  const floor = scaled >> shift;
  const twice = (scaled - (floor << shift)) * 2n;
  const whole = 1n << shift;
  return twice > whole || (twice === whole && (floor & 1n) === 1n) ? floor + 1n : floor;
}

/** `round(value, digits)` of a float. */
export function roundFloat(value: number, digits: number): number {
  if (!Number.isFinite(value)) return value;
  const scaled = roundedScaled(value, digits);
  if (scaled === 0n) return value < 0 || Object.is(value, -0) ? -0 : 0;
  return nearestDouble(scaled, 10n ** BigInt(digits));
}

/** Python's `round`: with digits a float stays a float and an int an int; without, the result is an int. */
export function round(value: PyValue, digits?: number): PyInt | PyFloat {
  if (!isNumber(value)) throw typeError(`type ${typeName(value)} doesn't define __round__ method`);
  if (!(value instanceof PyFloat)) return toInt(Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value));
  if (digits !== undefined) return new PyFloat(roundFloat(value.value, digits));
  if (Number.isNaN(value.value)) throw valueError("cannot convert float NaN to integer");
  if (!Number.isFinite(value.value)) throw new PyError("OverflowError", "cannot convert float infinity to integer");
  return toInt(roundedScaled(value.value, 0));
}

/** `f"{value:.2f}"`, and with `grouping` `f"{value:,.2f}"`. */
export function formatFixed(value: PyValue, digits = 2, grouping = false): string {
  if (typeof value === "string") throw valueError("Unknown format code 'f' for object of type 'str'");
  if (!isNumber(value)) throw typeError(`unsupported format string passed to ${typeName(value)}.__format__`);
  const double = toDouble(value);
  if (Number.isNaN(double)) return "nan";
  if (!Number.isFinite(double)) return double > 0 ? "inf" : "-inf";
  const isNegative = double < 0 || Object.is(double, -0);
  const text = String(roundedScaled(Math.abs(double), digits)).padStart(digits + 1, "0");
  const whole = text.slice(0, text.length - digits);
  const fraction = digits === 0 ? "" : `.${text.slice(text.length - digits)}`;
  return `${isNegative ? "-" : ""}${grouping ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole}${fraction}`;
}

/** `float(number)`. */
export function toDouble(value: PyNumber): number {
  if (value instanceof PyFloat) return value.value;
  if (typeof value !== "bigint") return Number(value);
  const double = nearestDouble(value, 1n);
  if (!Number.isFinite(double)) throw new PyError("OverflowError", "int too large to convert to float");
  return double;
}

/** An int or bool as a bigint, for exact arithmetic. */
export function toBig(value: boolean | PyInt): bigint {
  return BigInt(value);
}
