import { PythonSyntaxError } from "./error.ts";

export const STRING_START = /(?:[bB][rR]?|[rR][bB]?|[uU]|[fF][rR]?|[rR][fF])?(?:'''|"""|'|")/y;

export interface StringLiteral {
  readonly length: number;
  readonly prefix: string;
  readonly body: string;
  readonly value: string;
}

/** Reads the string literal whose prefix and opening quote, `start`, are at `at`. */
export function readString(source: string, at: number, start: string, line: number): StringLiteral {
  const quote = /['"]+$/.exec(start)?.[0] ?? "'";
  const prefix = start.slice(0, start.length - quote.length).toLowerCase();
  const bodyStart = at + start.length;
  const end = endOfString(source, bodyStart, quote, prefix.includes("f"));
  if (end === null) throw new PythonSyntaxError("unterminated string literal", line);
  const body = source.slice(bodyStart, end);
  const value = prefix.includes("r") ? body : decodeEscapes(body, prefix.includes("b"), line);
  return { length: end + quote.length - at, prefix, body, value };
}

/** The position of the closing quote. Quoted text between the braces of an f-string may contain the quote itself. */
function endOfString(source: string, start: number, quote: string, isFormatted: boolean): number | null {
  let depth = 0;
  for (let at = start; at < source.length; at++) {
    const character = source[at] ?? "";
    if (character === "\\") at++;
    else if (character === "\n" && quote.length === 1) return null;
    else if (isFormatted && character === "{") {
      if (depth === 0 && source[at + 1] === "{") at++;
      else depth++;
    } else if (isFormatted && character === "}") depth = Math.max(0, depth - 1);
    else if (depth > 0 && (character === '"' || character === "'") && !(quote.length === 3 && source.startsWith(quote, at))) {
      const close = source.indexOf(character, at + 1);
      const brace = source.indexOf("}", at + 1);
      if (close > 0 && brace > close && !source.slice(at, close).includes("\n")) at = close;
      else if (character === quote) return at;
    } else if (source.startsWith(quote, at)) return at;
  }
  return null;
}

const SIMPLE: Readonly<Record<string, string>> = {
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};
const ESCAPE = /\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{1,3}|[\s\S])/g;

/** Unknown escapes stay as written, as in Python. `\N{…}` would need the names of all characters and is not supported. */
function decodeEscapes(body: string, isBytes: boolean, line: number): string {
  return body.replace(ESCAPE, (whole, code: string) => {
    const simple = SIMPLE[code];
    if (simple !== undefined) return simple;
    if (isBytes && /^[uUN]/.test(code)) return whole;
    if (/^[xuU]./.test(code)) return characterOf(Number.parseInt(code.slice(1), 16), line);
    if (/^[0-7]/.test(code)) return characterOf(Number.parseInt(code, 8), line);
    if (/^[xuUN]/.test(code)) throw new PythonSyntaxError(`the escape ${whole} is incomplete or not supported`, line);
    return whole;
  });
}

function characterOf(code: number, line: number): string {
  if (code > 0x10ffff) throw new PythonSyntaxError(`there is no character with the code ${code}`, line);
  return String.fromCodePoint(code);
}
