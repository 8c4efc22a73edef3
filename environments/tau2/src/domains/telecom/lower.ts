import { attributeError } from "@aenv/benchmark";
import { typeName } from "../../python/values/types.ts";
import type { PyValue } from "../../python/values/values.ts";

/** `value.lower()`, which only strings have. */
export function lowered(value: PyValue): string {
  if (typeof value !== "string") throw attributeError(typeName(value), "lower");
  return value.toLowerCase();
}
