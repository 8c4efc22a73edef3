import { messageOf } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

/** The value as JSON. Throws a ValidationError for a bigint or a circular object. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new ValidationError(`the value to send cannot be written as JSON: ${messageOf(cause)}`, { cause });
  }
}
