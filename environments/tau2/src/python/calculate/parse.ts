import { PythonSyntaxError, UnexpectedToken } from "../syntax/error.ts";
import { ExpressionParser } from "../syntax/expression.ts";
import type { Node } from "../syntax/node.ts";
import { syntaxError, type Tokens, tokenize } from "./tokens.ts";

/** Parses one sum, or raises Python's SyntaxError with Python's message. */
export function parseSum(text: string): Node {
  const tokens = tokenize(text);
  if (tokens.all.length === 0) throw syntaxError("invalid syntax", 0);
  const parser = new ExpressionParser(tokens.all);
  try {
    const sum = parser.expression();
    parser.expectEnd();
    return sum;
  } catch (error) {
    if (error instanceof UnexpectedToken) throw syntaxError(messageOf(tokens, error));
    throw error instanceof PythonSyntaxError ? syntaxError(error.message) : error;
  }
}

const NEVER_CLOSED = "'(' was never closed";

function messageOf(tokens: Tokens, { position, isAfterOperand }: UnexpectedToken): string {
  const token = tokens.all[position];
  if (isUnclosedEnd(tokens, position)) return NEVER_CLOSED;
  const isOperand = token?.kind === "number" || token?.text === "...";
  if (!isOperand || !isAfterOperand) return "invalid syntax";
  if (isUnclosedEnd(tokens, endOfExpression(tokens, position))) return NEVER_CLOSED;
  return (tokens.depths[position] ?? 0) > 0 ? "invalid syntax. Perhaps you forgot a comma?" : "invalid syntax";
}

/** Where the longest expression that starts here ends; -1 if it is invalid for another reason than its last token. */
function endOfExpression({ all }: Tokens, position: number): number {
  const parser = new ExpressionParser(all, position, false);
  try {
    parser.expression();
    return parser.position;
  } catch (error) {
    if (error instanceof UnexpectedToken) return error.position;
    if (error instanceof PythonSyntaxError) return -1;
    throw error;
  }
}

/** Whether this is the end of the text inside an open parenthesis. */
function isUnclosedEnd({ all, depths }: Tokens, position: number): boolean {
  return position === all.length && (depths[position] ?? 0) > 0;
}
