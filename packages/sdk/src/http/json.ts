import { jsonLimits, messageOf, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";
import { AnswerLimitError, ValidationError } from "../errors/errors.ts";

/** The value as JSON. Throws a ValidationError for a bigint or a circular object. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new ValidationError(`the value to send cannot be written as JSON: ${messageOf(cause)}`, { cause });
  }
}

/** Parses the JSON of an answer. Throws an AnswerLimitError if it is too deep or has too many values, else a SyntaxError. */
export function readJson(
  text: string,
  request: { readonly method: string; readonly url: string },
  maxValues = jsonLimits.maxValues,
): unknown {
  try {
    return parseBoundedJson(text, { ...jsonLimits, maxValues });
  } catch (error) {
    throw error instanceof ReadLimitExceeded ? new AnswerLimitError(request, error) : error;
  }
}
