import { laxBool, laxFloat, laxInt } from "@aenv/benchmark";
import { exactRatio, toDouble } from "../numbers.ts";
import { PyDate, PyDateTime } from "../values/datetime.ts";
import { type Enumeration, PyEnum } from "../values/enums.ts";
import { Dict, isInt, isNumber, PyFloat, type PyInt, PyTuple, type PyValue, toInt } from "../values/values.ts";
import { readDate, readDateTime } from "./dates.ts";
import { INVALID, type Model, type Optional, Report, type Type } from "./model.ts";

function type<T extends PyValue>(read: Type<T>["read"]): Type<T> {
  return { read };
}

/** Any value, kept by reference. */
export const any: Type = type((input) => input);

export const text: Type<string> = type((input, report) => {
  if (typeof input === "string") return input;
  if (input instanceof PyEnum) return input.value;
  return report.refuse("string_type", "Input should be a valid string", input);
});

export const int: Type<PyInt> = type((input, report) => {
  if (isInt(input)) return input;
  if (typeof input === "boolean") return Number(input);
  if (input instanceof PyFloat) return intOfFloat(input, report);
  if (typeof input !== "string") return report.refuse("int_type", "Input should be a valid integer", input);
  const parsed = laxInt(input);
  if (parsed === "too long") return tooLarge(input, report);
  if (parsed !== null) return toInt(parsed);
  return report.refuse("int_parsing", "Input should be a valid integer, unable to parse string as an integer", input);
});

function intOfFloat(input: PyFloat, report: Report): PyInt | typeof INVALID {
  const { value } = input;
  if (!Number.isFinite(value)) return report.refuse("finite_number", "Input should be a finite number", input);
  if (!Number.isInteger(value)) {
    return report.refuse("int_from_float", "Input should be a valid integer, got a number with a fractional part", input);
  }
  return Math.abs(value) < 2 ** 63 ? toInt(exactRatio(value).numerator >> exactRatio(value).shift) : tooLarge(input, report);
}

function tooLarge(input: PyValue, report: Report): typeof INVALID {
  return report.refuse("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size", input);
}

export const number: Type<PyFloat> = type((input, report) => {
  if (input instanceof PyFloat) return input;
  if (isNumber(input)) {
    const double = typeof input === "bigint" && Math.abs(Number(input)) > Number.MAX_VALUE ? null : toDouble(input);
    return double === null ? report.refuse("float_type", "Input should be a valid number", input) : new PyFloat(double);
  }
  if (typeof input !== "string") return report.refuse("float_type", "Input should be a valid number", input);
  const double = laxFloat(input);
  if (double !== null) return new PyFloat(double);
  return report.refuse("float_parsing", "Input should be a valid number, unable to parse string as a number", input);
});

export const bool: Type<boolean> = type((input, report) => {
  if (typeof input === "boolean") return input;
  const number = input instanceof PyFloat ? input.value : input;
  if (number === 0 || number === 1) return number === 1;
  const word = typeof input === "string" ? laxBool(input) : null;
  if (word !== null) return word;
  const isParsed = typeof input === "string" || (typeof number === "number" && Number.isInteger(number) && Math.abs(number) < 2 ** 63);
  return isParsed
    ? report.refuse("bool_parsing", "Input should be a valid boolean, unable to interpret input", input)
    : report.refuse("bool_type", "Input should be a valid boolean", input);
});

/** One of these strings, exactly. */
export function literal<const Words extends readonly string[]>(...words: Words): Type<Words[number]> {
  const message = `Input should be ${choice(words)}`;
  return type((input, report) => {
    const given = input instanceof PyEnum ? input.value : input;
    return typeof given === "string" && words.includes(given) ? (given as Words[number]) : report.refuse("literal_error", message, input);
  });
}

/** A member of an enumeration, or its value. */
export function member(members: Enumeration<string>): Type<PyEnum> {
  const all = Object.values(members);
  const message = `Input should be ${choice(all.map(({ value }) => value))}`;
  return type((input, report) => {
    const found = all.find((candidate) => candidate === input || candidate.value === input);
    return found ?? report.refuse("enum", message, input);
  });
}

function choice(words: readonly string[]): string {
  const quoted = words.map((word) => `'${word}'`);
  const last = quoted.pop() ?? "";
  return quoted.length === 0 ? last : `${quoted.join(", ")} or ${last}`;
}

export function list<T extends PyValue>(item: Type<T>): Type<T[]> {
  return type((input, report) => {
    const items = input instanceof PyTuple ? input.items : input;
    if (!Array.isArray(items)) return report.refuse("list_type", "Input should be a valid list", input);
    const before = report.issues.length;
    const values: T[] = [];
    for (const [i, element] of items.entries()) {
      const value = report.at(i, item, element);
      if (value !== INVALID) values.push(value);
    }
    return report.issues.length === before ? values : INVALID;
  });
}

/** A dict with string keys, or with keys of another type. */
export function dict<T extends PyValue>(item: Type<T>, key: Type = text): Type<Dict<T>> {
  return type((input, report) => {
    if (!(input instanceof Dict)) return report.refuse("dict_type", "Input should be a valid dictionary", input);
    const before = report.issues.length;
    const values = new Dict<T>();
    for (const [given, element] of input) {
      report.path.push(String(given));
      const name = report.at("[key]", key, given);
      const value = item.read(element, report);
      report.path.pop();
      if (name !== INVALID && value !== INVALID) values.set(name, value);
    }
    return report.issues.length === before ? values : INVALID;
  });
}

/** None or a value of the type. The field is still required; see `withDefault`. */
export function nullable<T extends PyValue>(inner: Type<T>): Type<T | null> {
  return type((input, report) => (input === null ? null : inner.read(input, report)));
}

/** The first model that accepts the input. A literal field distinguishes the models, so at most one does. */
export function union<M extends readonly Model[]>(...models: M): Type<ReturnType<M[number]["create"]>> {
  return type((input, report) => {
    const issues = [];
    for (const candidate of models) {
      const attempt = new Report();
      attempt.path.push(...report.path, candidate.name);
      const value = candidate.read(input, attempt);
      if (value !== INVALID) return value as ReturnType<M[number]["create"]>;
      issues.push(...attempt.issues);
    }
    report.issues.push(...issues);
    return INVALID;
  });
}

export const date: Type<PyDate> = type((input, report) => {
  if (input instanceof PyDate) return input;
  const read = readDate(input);
  return read instanceof PyDate ? read : report.refuse(read.type, read.message, input);
});

export const datetime: Type<PyDateTime> = type((input, report) => {
  if (input instanceof PyDateTime) return input;
  const read = readDateTime(input);
  return read instanceof PyDateTime ? read : report.refuse(read.type, read.message, input);
});

/** An optional field. Pass a function for lists and dicts, so that each instance gets its own. */
export function withDefault<T extends PyValue>(inner: Type<T>, defaultValue: PyValue | (() => PyValue)): Optional<T> {
  return { type: inner, defaultValue: typeof defaultValue === "function" ? defaultValue : () => defaultValue };
}
