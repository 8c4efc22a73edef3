import * as z from "zod";
import { type ConfigProblem, environmentConfig } from "./config.ts";
import { isObject } from "./json.ts";
import { nearestName } from "./nearest.ts";

/**
 * Fields of a config that are probably misspelled: unknown, with a similar known name, or known one level deeper. Other unknown
 * fields are the author's own. All of them are kept.
 */
export function misspelledFields(value: unknown): ConfigProblem[] {
  return misspelledIn(value, environmentConfig, []);
}

function misspelledIn(value: unknown, schema: z.core.$ZodType, path: readonly (string | number)[]): ConfigProblem[] {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodArray && Array.isArray(value)) {
    return value.flatMap((each, index) => misspelledIn(each, inner.element, [...path, index]));
  }
  if (!(inner instanceof z.ZodObject) || !isObject(value)) return [];
  const { shape } = inner;
  return Object.entries(value).flatMap(([name, each]) => {
    const at = [...path, name];
    if (Object.hasOwn(shape, name)) return misspelledIn(each, shape[name], at);
    const meant = nearestName(name, Object.keys(shape)) ?? deeperName(name, shape);
    if (meant === null) return [];
    const full = [...path, meant].join(".");
    return [{ path: at, message: `${at.join(".")} is not a known field and has no effect; did you mean ${full}?` }];
  });
}

/** `deployConfig.ttl` for a `ttl` at the level of `deployConfig`. */
function deeperName(name: string, shape: Readonly<Record<string, z.core.$ZodType>>): string | null {
  for (const [outer, schema] of Object.entries(shape)) {
    const inner = unwrapped(schema);
    if (inner instanceof z.ZodObject && Object.hasOwn(inner.shape, name)) return `${outer}.${name}`;
  }
  return null;
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodOptional ? unwrapped(schema.unwrap()) : schema;
}
