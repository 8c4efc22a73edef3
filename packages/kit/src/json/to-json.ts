import { types } from "node:util";
import { type ErrorCode, type Json, PlatformError } from "@aenv/contract";
import { toBase64 } from "./bytes.ts";

/** A value without a JSON form. The message contains its path, such as `cart.items[2].when`. */
export class NotJsonError extends TypeError {
  override readonly name = "NotJsonError";
}

/** Deeper values are a mistake, and would exhaust the stack of a recursive reader. */
const MAX_DEPTH = 1_000;
const MAX_PATH = 200;

/**
 * A copy of a value as JSON, or an error with the path of the part that has no JSON form: nothing is dropped silently.
 * `what` names the value in the error. The guide "Write an environment" has a table of the conversions.
 */
export function toJson(value: unknown, what: string): Json {
  const trail: Trail = { parents: [], keys: [] };
  try {
    return plain(value, null, trail) ?? null;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const path = pathOf([...trail.keys, error.key]);
    throw new NotJsonError(`${what} cannot be written as JSON: ${path || "it"} is ${error.message}`);
  }
}

/** Like `toJson`, but throws a platform error with this code. */
export function jsonOrThrow(code: ErrorCode, value: unknown, what: string): Json {
  try {
    return toJson(value, what);
  } catch (error) {
    if (error instanceof NotJsonError) throw new PlatformError(code, error.message, { cause: error });
    throw error;
  }
}

/** The data of a tool's log message: a value without a JSON form is replaced by a description, so that the call does not fail. */
export function toLogData(value: unknown): Json {
  if (value === undefined) return null;
  if (value instanceof Error) return String(value);
  try {
    return toJson(value, "the log message");
  } catch (error) {
    return error instanceof Error ? error.message : "the log message cannot be written as JSON";
  }
}

/** Null for the root. */
type Key = string | number | null;

/** The position of the traversal: the enclosing objects and their keys. An error does not unwind it, so it then has the path of the error. */
interface Trail {
  readonly parents: object[];
  readonly keys: Key[];
}

class Refusal extends Error {
  readonly key: Key;

  constructor(key: Key, problem: string) {
    super(problem);
    this.key = key;
  }
}

/** Undefined for a value that is left out of an object, as JSON.stringify does. */
function plain(value: unknown, key: Key, trail: Trail): Json | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return value;
    case "number":
      // JSON has no negative zero.
      if (Number.isFinite(value)) return value === 0 ? 0 : value;
      throw new Refusal(key, `${value}; JSON has only finite numbers`);
    case "object":
      return value === null ? null : plainObject(value, key, trail);
    case "bigint":
      return value.toString();
    case "function":
      throw new Refusal(key, "a function");
    case "symbol":
      throw new Refusal(key, "a symbol");
  }
}

function plainObject(value: object, key: Key, trail: Trail): Json | undefined {
  const isList = Array.isArray(value);
  const isOrdinary = isList || isOrdinaryObject(value);
  if (!isOrdinary) {
    // Before toJSON: that of Buffer writes every byte as a number, and that of an invalid Date returns null.
    if (types.isDate(value)) return plainDate(value, key);
    if (types.isUint8Array(value)) return toBase64(value);
  }
  const { toJSON } = value as { toJSON?: (key: string) => unknown };
  if (typeof toJSON === "function") return plainGiven(value, toJSON, key, trail);
  if (isList) return within(value, key, trail, plainItems);
  if (!isOrdinary) {
    const form = formOf(value, key, trail);
    if (form !== undefined) return form;
    if (Object.keys(value).length === 0) throw new Refusal(key, describeOpaque(value));
  }
  return within(value, key, trail, plainFields);
}

function isOrdinaryObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Descends one level. Refuses a value that contains itself or is too deep. */
function within<T extends object>(value: T, key: Key, trail: Trail, copy: (value: T, trail: Trail) => Json): Json {
  const { parents, keys } = trail;
  enter(value, key, parents);
  if (key !== null) keys.push(key);
  const copied = copy(value, trail);
  parents.pop();
  if (key !== null) keys.pop();
  return copied;
}

function enter(value: object, key: Key, parents: object[]): void {
  if (parents.includes(value)) throw new Refusal(key, "a reference to an object that contains it (a cycle)");
  if (parents.length >= MAX_DEPTH) throw new Refusal(key, `nested deeper than ${MAX_DEPTH} levels`);
  parents.push(value);
}

/** Uses the result of toJSON instead of the value. If that is the value itself, its toJSON is not called again. */
function plainGiven(value: object, toJson: (key: string) => unknown, key: Key, trail: Trail): Json | undefined {
  const given = toJson.call(value, key === null ? "" : String(key));
  if (given === value) return within(value, key, trail, Array.isArray(value) ? (plainItems as never) : plainFields);
  enter(value, key, trail.parents);
  const copied = plain(given, key, trail);
  trail.parents.pop();
  return copied;
}

function plainItems(items: readonly unknown[], trail: Trail): Json[] {
  const copy: Json[] = [];
  for (let at = 0; at < items.length; at++) {
    const item = plain(items[at], at, trail);
    if (item === undefined) throw new Refusal(at, at in items ? "undefined; in a list use null" : "missing: the list has a hole");
    copy.push(item);
  }
  return copy;
}

function plainFields(value: object, trail: Trail): Json {
  const copy: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const field = plain((value as Record<string, unknown>)[key], key, trail);
    if (field !== undefined) set(copy, key, field);
  }
  return copy;
}

function plainMap(map: ReadonlyMap<unknown, unknown>, trail: Trail): Json {
  const isRecord = [...map.keys()].every((key) => typeof key === "string");
  if (!isRecord) return plainItems([...map], trail);
  const copy: Record<string, Json> = {};
  for (const [key, value] of map as ReadonlyMap<string, unknown>) {
    const field = plain(value, key, trail);
    if (field !== undefined) set(copy, key, field);
  }
  return copy;
}

/** An assignment to `__proto__` would set the prototype instead of adding a field. */
function set(copy: Record<string, Json>, key: string, value: Json): void {
  if (key === "__proto__") Object.defineProperty(copy, key, { value, enumerable: true, configurable: true, writable: true });
  else copy[key] = value;
}

function plainDate(date: Date, key: Key): string {
  if (Number.isNaN(date.getTime())) throw new Refusal(key, "an invalid Date");
  return date.toISOString();
}

/** The JSON form of built-in objects; undefined for other objects. */
function formOf(value: object, key: Key, trail: Trail): Json | undefined {
  if (types.isMap(value)) return within(value, key, trail, plainMap);
  if (types.isSet(value)) return within(value, key, trail, (all) => plainItems([...all], trail));
  if (types.isAnyArrayBuffer(value)) return toBase64(new Uint8Array(value));
  if (types.isTypedArray(value)) return within(value, key, trail, (all) => plainItems(Array.from<unknown>(all), trail));
  if (types.isBoxedPrimitive(value)) return plain(value.valueOf(), key, trail);
  if (types.isNativeError(value) || value instanceof Error) throw new Refusal(key, "an Error; throw it, or return its message");
  if (types.isPromise(value)) throw new Refusal(key, "a Promise; await it");
  return undefined;
}

/** Describes an object that JSON.stringify would write as `{}` although it is not empty data. */
function describeOpaque(value: object): string {
  if (typeof (value as { next?: unknown }).next === "function") return "a generator or another iterator; convert it to an array";
  const { constructor: made } = value as { constructor?: unknown };
  const name = typeof made === "function" && made.name !== "" ? `an instance of ${made.name}` : "an object";
  return `${name} without enumerable fields; return plain data, or give it a toJSON method`;
}

function pathOf(keys: readonly Key[]): string {
  let path = "";
  for (const key of keys) {
    if (key === null) continue;
    if (typeof key === "number") path += `[${key}]`;
    else if (/^[A-Za-z_$][\w$]*$/.test(key)) path += path === "" ? key : `.${key}`;
    else path += `[${JSON.stringify(key)}]`;
  }
  return path.length <= MAX_PATH ? path : `${path.slice(0, MAX_PATH / 2)}…${path.slice(-MAX_PATH / 2)}`;
}
