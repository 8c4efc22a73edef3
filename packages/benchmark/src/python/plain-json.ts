import { PyError } from "./errors.ts";
import { parseJson } from "./json.ts";

/** JSON with numbers of JavaScript. An object is a map, which keeps the order of all keys, also of "10". */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = ReadonlyMap<string, Json>;

const PLAIN = { int: Number, float: Number, members: () => new Map<string, Json>() };

/** `json.loads`; ints and floats are not distinguished. Raises JSONDecodeError. */
export function readJson(text: string): Json {
  return readFast(text) ?? readOrdered(text);
}

function readOrdered(text: string): Json {
  try {
    return parseJson<number, Map<string, Json>>(text, PLAIN);
  } catch (error) {
    throw error instanceof PyError ? new PyError(error.kind, `invalid JSON: ${error.message}`) : error;
  }
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Most texts: what JavaScript's own reader reads, in the same order. Null for the others, and for the value null. */
function readFast(text: string): Json {
  try {
    return convert(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Throws on a key such as "10": JavaScript has moved it before the others. */
function convert(value: unknown): Json {
  if (value === null || typeof value !== "object") return value as Json;
  if (Array.isArray(value)) return value.map(convert);
  const members = new Map<string, Json>();
  for (const [key, member] of Object.entries(value)) {
    if (/^\d/.test(key)) throw new Error(`the order of the key '${key}' is lost`);
    members.set(key, convert(member));
  }
  return members;
}
