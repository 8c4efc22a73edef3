import { PyError } from "@aenv/benchmark";

export interface Token {
  readonly kind: "int" | "float" | "ellipsis" | "operator" | "end";
  readonly text: string;
  /** Number of open parentheses before it. */
  readonly depth: number;
}

const TOKEN = / *(?:(\d+\.\d*|\.\d+)|(\d+)|(\.\.\.)|(\*\*|\/\/|[-+*/().]))/y;
const MAX_DEPTH = 200;
const MAX_DIGITS = 4300;

export function syntaxError(message: string, line = 1): PyError {
  return new PyError("SyntaxError", `${message} (<string>, line ${line})`);
}

/** Splits an expression of digits, operators, parentheses, points and spaces. Errors found here take precedence over those of the parser. */
export function tokenize(expression: string): readonly Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  let tooLong: number | null = null;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(expression); match !== null; match = TOKEN.exec(expression)) {
    const [, float, int, ellipsis, operator] = match;
    if (int !== undefined) {
      if (/^0+[1-9]/.test(int) || /^0\d*[1-9]/.test(int)) {
        throw syntaxError("leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers");
      }
      if (int.length > MAX_DIGITS && /[1-9]/.test(int)) tooLong ??= int.length;
      tokens.push({ kind: "int", text: int, depth });
    } else if (float !== undefined) tokens.push({ kind: "float", text: float, depth });
    else if (ellipsis !== undefined) tokens.push({ kind: "ellipsis", text: ellipsis, depth });
    else if (operator !== undefined) {
      if (operator === "(" && ++depth > MAX_DEPTH) throw syntaxError("too many nested parentheses");
      if (operator === ")" && depth-- === 0) throw syntaxError("unmatched ')'");
      tokens.push({ kind: "operator", text: operator, depth: operator === "(" ? depth - 1 : operator === ")" ? depth + 1 : depth });
    }
  }
  if (tooLong !== null) {
    throw syntaxError(
      `Exceeds the limit (${MAX_DIGITS} digits) for integer string conversion: value has ${tooLong} digits; ` +
        "use sys.set_int_max_str_digits() to increase the limit - Consider hexadecimal for huge integer literals to avoid decimal conversion limits.",
    );
  }
  tokens.push({ kind: "end", text: "", depth });
  return tokens;
}
