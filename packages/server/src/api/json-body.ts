import { messageOf, PlatformError, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";

/**
 * Parses a body, within the limits of ordinary messages. More fields than the route allows are refused too: a small text of many fields takes
 * much longer to read than a large text of few.
 */
export function parseJson(text: string, maxFields = Number.POSITIVE_INFINITY): unknown {
  const fields = maxFields === Number.POSITIVE_INFINITY ? 0 : fieldsIn(text);
  if (fields > maxFields) {
    throw new PlatformError(
      "request.too_large",
      `the body has ${fields} fields, more than the ${maxFields} of this route; send it as several requests`,
      { details: { maxFields } },
    );
  }
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (error instanceof ReadLimitExceeded) throw invalid(`the body is not accepted: ${error.message}`);
    // Node quotes a part of the text, which may be a part of a secret.
    throw invalid(messageOf(error).replace(/, (?:\.{3})?".*"(?:\.{3})? is not/s, ": the body is not"));
  }
}

function invalid(why: string): PlatformError {
  return new PlatformError("request.invalid", `Invalid request format: ${why}`);
}

function fieldsIn(text: string): number {
  let fields = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInString = !isInString;
    else if (isInString) at += Number(code === BACKSLASH);
    else if (code === COLON) fields++;
  }
  return fields;
}

const [QUOTE, BACKSLASH, COLON] = [34, 92, 58];
