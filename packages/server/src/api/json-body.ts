import { messageOf, PlatformError } from "@aenv/contract";

/** Deep enough for any real request, and shallow enough that recursive code does not overflow the stack. */
const MAX_DEPTH = 1_000;

/**
 * Parses a body. Extreme nesting is refused: it would overflow the stack of code that walks the value. So are more fields than the route
 * allows: a small text of many fields takes much longer to read than a large text of few.
 */
export function parseJson(text: string, maxFields = Number.POSITIVE_INFINITY): unknown {
  const { depth, fields } = sizeOf(text);
  if (depth > MAX_DEPTH) throw invalid(`the body is nested deeper than ${MAX_DEPTH} levels`);
  if (fields > maxFields) {
    throw new PlatformError(
      "request.too_large",
      `the body has ${fields} fields, more than the ${maxFields} of this route; send it as several requests`,
      { details: { maxFields } },
    );
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // Node quotes a part of the text, which may be a part of a secret.
    throw invalid(messageOf(error).replace(/, (?:\.{3})?".*"(?:\.{3})? is not/s, ": the body is not"));
  }
}

function invalid(why: string): PlatformError {
  return new PlatformError("request.invalid", `Invalid request format: ${why}`);
}

function sizeOf(text: string): { readonly depth: number; readonly fields: number } {
  let depth = 0;
  let deepest = 0;
  let fields = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInString = !isInString;
    else if (isInString) at += Number(code === BACKSLASH);
    else if (code === COLON) fields++;
    else if (code === BRACKET || code === BRACE) deepest = Math.max(deepest, ++depth);
    else if (code === BRACKET + 2 || code === BRACE + 2) depth--;
  }
  return { depth: deepest, fields };
}

const [QUOTE, BACKSLASH, BRACKET, BRACE, COLON] = [34, 92, 91, 123, 58];
