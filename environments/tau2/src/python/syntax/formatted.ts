import { PythonSyntaxError } from "./error.ts";

const REPLACEMENT_END = /^(?:![rsa])?$/;

/** Checks the body of an f-string: `isExpression` must accept the source of each replacement field `{…}`. */
export function checkFormatted(body: string, isExpression: (source: string) => boolean, depth = 0): void {
  for (let at = 0; at < body.length; at++) {
    const char = body[at];
    if (char !== "{" && char !== "}") continue;
    if (depth === 0 && body[at + 1] === char) {
      at++;
      continue;
    }
    if (char === "}") throw new PythonSyntaxError("single '}' is not allowed");
    at = checkField(body, at + 1, isExpression, depth);
  }
}

/** Checks one replacement field and returns the position of its closing brace. */
function checkField(body: string, start: number, isExpression: (source: string) => boolean, depth: number): number {
  if (depth > 1) throw new PythonSyntaxError("replacement fields are nested too deeply");
  const end = endOfExpression(body, start);
  const source = body
    .slice(start, end)
    .replace(/=\s*$/, "")
    .replace(/^[ \t\f\r]+/, "");
  if (source.includes("\\") || !isExpression(source)) throw new PythonSyntaxError("a replacement field contains no expression");
  const conversionEnd = /^![a-z]/.test(body.slice(end)) ? end + 2 : end;
  if (!REPLACEMENT_END.test(body.slice(end, conversionEnd))) throw new PythonSyntaxError("unknown conversion in a replacement field");
  if (body[conversionEnd] === "}") return conversionEnd;
  if (body[conversionEnd] !== ":") throw new PythonSyntaxError("a replacement field is not closed");
  const close = closingBrace(body, conversionEnd + 1);
  checkFormatted(body.slice(conversionEnd + 1, close), isExpression, depth + 1);
  return close;
}

/** The position of the first `!`, `:` or `}` outside brackets and strings. */
function endOfExpression(body: string, start: number): number {
  let open = 0;
  let quote = "";
  for (let at = start; at < body.length; at++) {
    const char = body[at] ?? "";
    if (quote !== "") {
      if (char === quote) quote = "";
      continue;
    }
    if (char === "'" || char === '"') quote = char;
    else if ("([{".includes(char)) open++;
    else if (open > 0 && ")]}".includes(char)) open--;
    else if (open === 0 && (char === "}" || char === ":" || (char === "!" && body[at + 1] !== "="))) return at;
    else if (char === "#") break;
  }
  throw new PythonSyntaxError("a replacement field is not closed");
}

function closingBrace(body: string, start: number): number {
  let open = 0;
  for (let at = start; at < body.length; at++) {
    if (body[at] === "{") open++;
    else if (body[at] === "}" && open-- === 0) return at;
  }
  throw new PythonSyntaxError("a replacement field is not closed");
}
