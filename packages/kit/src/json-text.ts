import { messageOf } from "@aenv/contract";

/** A tool's value as JSON text; undefined for what JSON leaves out, such as a function. What JSON cannot write is the tool's failure. */
export function toJsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // A bigint, or a ring.
    throw new TypeError(`the tool's result cannot be written as JSON: ${messageOf(error)}`, { cause: error });
  }
}

/** A tool's value as it arrives at the other end: dates as text, nothing undefined. */
export function throughJson(value: unknown): unknown {
  return JSON.parse(toJsonText(value) ?? "null");
}
