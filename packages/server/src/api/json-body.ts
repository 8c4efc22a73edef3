import { messageOf, PlatformError } from "@aenv/contract";

/** Deep enough for any real request, and shallow enough that recursive code does not overflow the stack. */
const MAX_DEPTH = 1_000;

/** Parses a body. Extreme nesting is refused: it would overflow the stack of code that walks the value. */
export function parseJson(text: string): unknown {
  if (depthOf(text) > MAX_DEPTH) throw invalid(`the body is nested deeper than ${MAX_DEPTH} levels`);
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

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInString = !isInString;
    else if (isInString) at += Number(code === BACKSLASH);
    else if (code === BRACKET || code === BRACE) deepest = Math.max(deepest, ++depth);
    else if (code === BRACKET + 2 || code === BRACE + 2) depth--;
  }
  return deepest;
}

const [QUOTE, BACKSLASH, BRACKET, BRACE] = [34, 92, 91, 123];
