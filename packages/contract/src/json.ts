import * as z from "zod";
import { parseBoundedJson } from "./bounded-json.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** A JSON Schema as a plain object; its own rules are checked where it is compiled. */
export const jsonSchemaObject = z.record(z.string(), z.unknown());
export type JsonSchema = z.infer<typeof jsonSchemaObject>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined if the text is not JSON, or exceeds the limits of JSON that somebody else wrote. */
export function tryJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
