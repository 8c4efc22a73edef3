import { PlatformError, parseBoundedJson } from "@aenv/contract";

export type Fields = Readonly<Record<string, unknown>>;

/** Parses JSON of the init. A program of the sandbox may have taken the init over, so nothing is assumed. */
export function parseFields(text: Buffer | string): Fields {
  let value: unknown;
  try {
    value = parseBoundedJson(text.toString());
  } catch {
    value = undefined;
  }
  return fieldsOf(value);
}

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== "object" || value === null) throw unexpected("an object", value);
  return value as Fields;
}

export function numberIn(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== "number") throw unexpected(`a number as ${name}`, value);
  return value;
}

/** Null if it is missing. */
export function optionalNumberIn(fields: Fields, name: string): number | null {
  return fields[name] === undefined ? null : numberIn(fields, name);
}

export function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw unexpected(`a text as ${name}`, value);
  return value;
}

export function listIn(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw unexpected(`a list as ${name}`, value);
  return value;
}

function unexpected(expected: string, value: unknown): PlatformError {
  return new PlatformError("sandbox.lost", `the sandbox's init sent ${JSON.stringify(value)?.slice(0, 100)} instead of ${expected}`);
}
