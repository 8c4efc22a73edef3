import { NotPython } from "./not-python.ts";

export const STRING_START = /(?:[bB][rR]?|[rR][bB]?|[uU]|[fF][rR]?|[rR][fF])?(?:'''|"""|'|")/y;

export interface StringToken {
  readonly length: number;
  /** In lower case: some of r, b, f, u. */
  readonly prefix: string;
  /** What stands between the quotes, escapes not yet read. */
  readonly body: string;
}

/** Finds the end of a string literal that begins with `start` at `at`. */
export function readString(source: string, at: number, start: string): StringToken {
  const quote = /['"]+$/.exec(start)?.[0] ?? "'";
  let end = at + start.length;
  while (!source.startsWith(quote, end)) {
    if (end >= source.length || source[end] === "\n") throw new NotPython("a string is not closed");
    end += source[end] === "\\" ? 2 : 1;
  }
  if (end > source.length) throw new NotPython("a string is not closed");
  return {
    length: end + quote.length - at,
    prefix: start.slice(0, start.length - quote.length).toLowerCase(),
    body: source.slice(at + start.length, end),
  };
}

const SIMPLE: Readonly<Record<string, string>> = {
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};
const ESCAPE = /\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{1,3}|[\s\S])/g;

/** The text that a literal stands for. `\N{…}` needs the names of all characters and is not read. */
export function decodeText(body: string): string {
  return body.replace(ESCAPE, (whole, code: string) => {
    const simple = SIMPLE[code];
    if (simple !== undefined) return simple;
    if (/^[xuU]./.test(code)) return characterOf(Number.parseInt(code.slice(1), 16));
    if (/^[0-7]/.test(code)) return characterOf(Number.parseInt(code, 8));
    if (/^[xuUN]/.test(code)) throw new NotPython(`the escape ${whole} is not complete or not known`);
    return whole;
  });
}

function characterOf(code: number): string {
  if (code > 0x10ffff) throw new NotPython("there is no such character");
  return String.fromCodePoint(code);
}

const REPLACEMENT_END = /^(?:![rsa])?$/;

/** Checks a formatted string: each `{…}` must hold an expression, which `isExpression` judges. */
export function checkFormatted(body: string, isExpression: (source: string) => boolean, depth = 0): void {
  for (let at = 0; at < body.length; at++) {
    const char = body[at];
    if (char !== "{" && char !== "}") continue;
    if (depth === 0 && body[at + 1] === char) {
      at++;
      continue;
    }
    if (char === "}") throw new NotPython("a '}' stands alone");
    at = checkField(body, at + 1, isExpression, depth);
  }
}

/** Checks one replacement field and gives the place of its closing brace. */
function checkField(body: string, start: number, isExpression: (source: string) => boolean, depth: number): number {
  if (depth > 1) throw new NotPython("replacement fields are nested too deeply");
  const end = endOfExpression(body, start);
  const source = body.slice(start, end).replace(/=\s*$/, "");
  if (source.includes("\\") || !isExpression(source)) throw new NotPython("a replacement field holds no expression");
  const conversionEnd = /^![a-z]/.test(body.slice(end)) ? end + 2 : end;
  if (!REPLACEMENT_END.test(body.slice(end, conversionEnd))) throw new NotPython("a conversion is not known");
  if (body[conversionEnd] === "}") return conversionEnd;
  if (body[conversionEnd] !== ":") throw new NotPython("a replacement field is not closed");
  const close = closingBrace(body, conversionEnd + 1);
  checkFormatted(body.slice(conversionEnd + 1, close), isExpression, depth + 1);
  return close;
}

/** Up to the `!`, `:` or `}` that no bracket or string hides. */
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
  throw new NotPython("a replacement field is not closed");
}

function closingBrace(body: string, start: number): number {
  let open = 0;
  for (let at = start; at < body.length; at++) {
    if (body[at] === "{") open++;
    else if (body[at] === "}" && open-- === 0) return at;
  }
  throw new NotPython("a replacement field is not closed");
}
