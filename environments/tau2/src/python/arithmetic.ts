import { PyError, typeError } from "@aenv/benchmark";
import { exactRatio, nearestDouble, toBig, toDouble } from "./numbers.ts";
import { typeName } from "./values/types.ts";
import { isInt, isNumber, PyFloat, type PyInt, PyOpaque, PyTuple, type PyValue, toInt } from "./values/values.ts";

export type Operator = "+" | "-" | "*" | "/" | "//" | "**";

/** The reference needs minutes for larger ints, so there is no result to compare with. */
const MAX_BITS = 4_000_000;

export const add = (a: PyValue, b: PyValue): PyValue => operate(a, "+", b);
export const subtract = (a: PyValue, b: PyValue): PyValue => operate(a, "-", b);
export const multiply = (a: PyValue, b: PyValue): PyValue => operate(a, "*", b);

/** `a operator b` with Python's results and errors. */
export function operate(a: PyValue, operator: Operator, b: PyValue): PyValue {
  if (isNumber(a) && isNumber(b)) {
    if (!(a instanceof PyFloat) && !(b instanceof PyFloat)) return operateInts(toPlainInt(a), operator, toPlainInt(b));
    return operateFloats(toDouble(a), operator, toDouble(b));
  }
  if (isComplex(a) || isComplex(b)) return operateComplex(a, operator, b);
  return operateOthers(a, operator, b);
}

/** `-value` and `+value`. */
export function signed(sign: "+" | "-", value: PyValue): PyValue {
  if (isComplex(value)) return value;
  if (!isNumber(value)) throw typeError(`bad operand type for unary ${sign}: '${typeName(value)}'`);
  if (value instanceof PyFloat) return sign === "-" ? new PyFloat(-value.value) : value;
  const int = toPlainInt(value);
  return sign === "-" ? toInt(-toBig(int)) : int;
}

const toPlainInt = (value: boolean | PyInt): PyInt => (isInt(value) ? value : Number(value));

function operateInts(a: PyInt, operator: Operator, b: PyInt): PyValue {
  if (typeof a === "number" && typeof b === "number" && operator !== "/" && operator !== "//" && operator !== "**") {
    const quick = operator === "+" ? a + b : operator === "-" ? a - b : a * b;
    if (Number.isSafeInteger(quick)) return quick + 0;
  }
  const left = toBig(a);
  const right = toBig(b);
  switch (operator) {
    case "+":
      return toInt(left + right);
    case "-":
      return toInt(left - right);
    case "*":
      return toInt(left * right);
    case "/":
      return divideInts(left, right);
    case "//":
      return floorDivideInts(left, right);
    case "**":
      if (right < 0n) return operateFloats(toDouble(a), "**", toDouble(b));
      return powerOfInts(left, right);
  }
}

function divideInts(a: bigint, b: bigint): PyValue {
  if (b === 0n) throw new PyError("ZeroDivisionError", "division by zero");
  const quotient = nearestDouble(a, b);
  if (!Number.isFinite(quotient)) throw new PyError("OverflowError", "integer division result too large for a float");
  return new PyFloat(quotient === 0 && a < 0n !== b < 0n ? -0 : quotient);
}

function floorDivideInts(a: bigint, b: bigint): PyValue {
  if (b === 0n) throw new PyError("ZeroDivisionError", "integer division or modulo by zero");
  const quotient = a / b;
  return toInt(quotient * b !== a && a < 0n !== b < 0n ? quotient - 1n : quotient);
}

function powerOfInts(base: bigint, exponent: bigint): PyValue {
  const bits = base.toString(2).length;
  if (bits > 2 && BigInt(bits - 1) * exponent > BigInt(MAX_BITS)) {
    throw new PyError(
      "OverflowError",
      `the result of ${String(base).slice(0, 20)} ** ${String(exponent).slice(0, 20)} has too many digits`,
    );
  }
  if (base === 0n || base === 1n) return toInt(exponent === 0n ? 1n : base);
  if (base === -1n) return exponent % 2n === 0n ? 1 : -1;
  return toInt(base ** exponent);
}

function operateFloats(a: number, operator: Operator, b: number): PyValue {
  switch (operator) {
    case "+":
      return new PyFloat(a + b);
    case "-":
      return new PyFloat(a - b);
    case "*":
      return new PyFloat(a * b);
    case "/":
      if (b === 0) throw new PyError("ZeroDivisionError", "float division by zero");
      return new PyFloat(a / b);
    case "//":
      if (b === 0) throw new PyError("ZeroDivisionError", "float floor division by zero");
      return new PyFloat(floorDivide(a, b));
    case "**":
      return power(a, b);
  }
}

/** Floor division of floats as in C: computed from the remainder, because the quotient may not be representable. */
function floorDivide(a: number, b: number): number {
  const remainder = a % b;
  let quotient = (a - remainder) / b;
  if (remainder !== 0 && remainder < 0 !== b < 0) quotient -= 1;
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

function power(base: number, exponent: number): PyValue {
  if (exponent === 0 || base === 1) return new PyFloat(1);
  if (base === 0 && exponent < 0) throw new PyError("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (base < 0 && Number.isFinite(base) && Number.isFinite(exponent) && !Number.isInteger(exponent)) return complex(Number.NaN);
  if (base === -1 && !Number.isFinite(exponent)) return new PyFloat(1);
  const result = accuratePower(base, exponent);
  if (!Number.isFinite(result) && Number.isFinite(base) && Number.isFinite(exponent)) {
    throw new PyError("OverflowError", "(34, 'Numerical result out of range')");
  }
  return new PyFloat(result);
}

/** JavaScript's `**` may miss the last digit; a whole exponent of modest size is computed exactly and rounded once. */
function accuratePower(base: number, exponent: number): number {
  const rough = base ** exponent;
  if (!Number.isInteger(exponent) || Math.abs(exponent) > 2048 || !Number.isFinite(rough) || rough === 0 || !Number.isFinite(base))
    return rough;
  const { numerator, shift } = exactRatio(base);
  const times = BigInt(Math.abs(exponent));
  const top = numerator ** times;
  const bottom = 1n << (shift * times);
  return exponent > 0 ? nearestDouble(top, bottom) : nearestDouble(bottom, top);
}

/** Results only depend on a value being complex and on whether it is zero, so the parts are not computed. */
function complex(size: number): PyOpaque {
  return new PyOpaque("complex", size === 0 ? "0j" : "(complex)");
}

function isComplex(value: PyValue): value is PyOpaque {
  return value instanceof PyOpaque && value.type === "complex";
}

function operateComplex(a: PyValue, operator: Operator, b: PyValue): PyValue {
  const areNumbers = (isComplex(a) || isNumber(a)) && (isComplex(b) || isNumber(b));
  if (!areNumbers || operator === "//") return operateOthers(a, operator, b);
  if (operator === "/" && isZero(b)) throw new PyError("ZeroDivisionError", "complex division by zero");
  if (operator === "**" && isZero(a)) throw new PyError("ZeroDivisionError", "0.0 to a negative or complex power");
  return complex(Number.NaN);
}

function isZero(value: PyValue): boolean {
  return isNumber(value) ? toDouble(value) === 0 : value instanceof PyOpaque && value.text === "0j";
}

function operateOthers(a: PyValue, operator: Operator, b: PyValue): PyValue {
  if (operator === "+" && isSequence(a)) return concatenate(a, b);
  if (operator === "*" && (isSequence(a) || isSequence(b))) return repeat(a, b);
  const name = operator === "**" ? "** or pow()" : operator;
  throw typeError(`unsupported operand type(s) for ${name}: '${typeName(a)}' and '${typeName(b)}'`);
}

type Sequence = string | PyValue[] | PyTuple;

function isSequence(value: PyValue): value is Sequence {
  return typeof value === "string" || Array.isArray(value) || value instanceof PyTuple;
}

function concatenate(a: Sequence, b: PyValue): PyValue {
  if (typeof a === "string" && typeof b === "string") return a + b;
  if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
  if (a instanceof PyTuple && b instanceof PyTuple) return new PyTuple([...a.items, ...b.items]);
  throw typeError(`can only concatenate ${typeName(a)} (not "${typeName(b)}") to ${typeName(a)}`);
}

function repeat(a: PyValue, b: PyValue): PyValue {
  const [sequence, times] = isSequence(a) ? [a, b] : [b as Sequence, a];
  if (!isInt(times) && typeof times !== "boolean") throw typeError(`can't multiply sequence by non-int of type '${typeName(times)}'`);
  const count = Math.max(0, Number(times));
  const length = typeof sequence === "string" ? sequence.length : Array.isArray(sequence) ? sequence.length : sequence.items.length;
  if (length * count > 10_000_000) throw new PyError("OverflowError", `${count} times a sequence of ${length} is too much`);
  if (typeof sequence === "string") return sequence.repeat(count);
  const items = Array.isArray(sequence) ? sequence : sequence.items;
  const all = Array.from({ length: length === 0 ? 0 : count }, () => items).flat();
  return Array.isArray(sequence) ? all : new PyTuple(all);
}
