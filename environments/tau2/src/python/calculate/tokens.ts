import { MAX_DIGITS, PyError } from "@aenv/benchmark";
import type { Token } from "../syntax/tokens.ts";
import { PyFloat, toInt } from "../values/values.ts";

const TOKEN = / *(?:(\d+\.\d*|\.\d+)|(\d+)|(\.\.\.|\*\*|\/\/|[-+*/().]))/y;
const MAX_DEPTH = 200;

export interface Tokens {
  readonly all: readonly Token[];
  /** How many parentheses are open before each token, and at the end. */
  readonly depths: readonly number[];
}

export function syntaxError(message: string, line = 1): PyError {
  return new PyError("SyntaxError", `${message} (<string>, line ${line})`);
}

/** Splits an expression of digits, operators, parentheses, points and spaces. Errors found here take precedence over those of the parser. */
export function tokenize(expression: string): Tokens {
  const all: Token[] = [];
  const depths: number[] = [];
  let depth = 0;
  let tooLong: number | null = null;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(expression); match !== null; match = TOKEN.exec(expression)) {
    const [, float, int, operator = ""] = match;
    depths.push(depth);
    if (int !== undefined) {
      if (/^0\d*[1-9]/.test(int)) {
        throw syntaxError("leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers");
      }
      if (int.length > MAX_DIGITS && /[1-9]/.test(int)) tooLong ??= int.length;
      all.push({ kind: "number", text: int, line: 1, value: toInt(BigInt(int)) });
    } else if (float !== undefined) all.push({ kind: "number", text: float, line: 1, value: new PyFloat(Number(float)) });
    else {
      if (operator === "(" && ++depth > MAX_DEPTH) throw syntaxError("too many nested parentheses");
      if (operator === ")" && depth-- === 0) throw syntaxError("unmatched ')'");
      all.push({ kind: "operator", text: operator, line: 1 });
    }
  }
  if (tooLong !== null) {
    throw syntaxError(
      `Exceeds the limit (${MAX_DIGITS} digits) for integer string conversion: value has ${tooLong} digits; ` +
        "use sys.set_int_max_str_digits() to increase the limit - Consider hexadecimal for huge integer literals to avoid decimal conversion limits.",
    );
  }
  depths.push(depth);
  return { all, depths };
}
