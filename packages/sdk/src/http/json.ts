import { messageOf } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

/** JSON, or an error that says so where a value has none: a bigint, or an object that holds itself. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new ValidationError(`what was to be sent cannot be written as JSON: ${messageOf(cause)}`, { cause });
  }
}
