import type { Operator } from "../arithmetic.ts";
import { PyFloat, PyOpaque, PyTuple, type PyValue, toInt } from "../values/values.ts";
import { syntaxError, type Token, tokenize } from "./tokens.ts";

export type Expression =
  | { readonly kind: "value"; readonly value: PyValue }
  | { readonly kind: "sign"; readonly sign: "+" | "-"; readonly operand: Expression }
  | { readonly kind: "binary"; readonly operator: Operator; readonly left: Expression; readonly right: Expression }
  | { readonly kind: "call"; readonly callee: Expression; readonly star: "" | "*" | "**"; readonly argument: Expression | null };

/** Parses one Python expression, or raises Python's SyntaxError. */
export function parseExpression(text: string): Expression {
  const tokens = tokenize(text);
  if (tokens.length === 1) throw syntaxError("invalid syntax", 0);
  const parser = new Parser(tokens, 0);
  try {
    const expression = parser.expression();
    if (parser.token.kind !== "end") throw new ParseFailure(parser.position, true);
    return expression;
  } catch (error) {
    if (!(error instanceof ParseFailure)) throw error;
    throw error.message === "" ? errorAt(tokens, error) : syntaxError(error.message);
  }
}

/** The first unexpected token, and whether a complete operand precedes it. */
class ParseFailure extends Error {
  readonly position: number;
  readonly isAfterOperand: boolean;
  constructor(position: number, isAfterOperand: boolean, message = "") {
    super(message);
    this.position = position;
    this.isAfterOperand = isAfterOperand;
  }
}

function errorAt(tokens: readonly Token[], { position, isAfterOperand }: ParseFailure): Error {
  const token = tokens[position];
  if (isUnclosedEnd(tokens, position, isAfterOperand)) return syntaxError("'(' was never closed");
  const isOperand = token?.kind === "int" || token?.kind === "float" || token?.kind === "ellipsis";
  if (!isOperand || !isAfterOperand) return syntaxError("invalid syntax");
  if (reachesUnclosedEnd(tokens, position)) return syntaxError("'(' was never closed");
  return syntaxError(token.depth > 0 ? "invalid syntax. Perhaps you forgot a comma?" : "invalid syntax");
}

/** Whether the longest expression that starts here reaches the end of the text inside an open parenthesis. */
function reachesUnclosedEnd(tokens: readonly Token[], position: number): boolean {
  const parser = new Parser(tokens, position, true);
  try {
    parser.expression();
    return isUnclosedEnd(tokens, parser.position, true);
  } catch (error) {
    if (!(error instanceof ParseFailure)) throw error;
    return isUnclosedEnd(tokens, error.position, error.isAfterOperand);
  }
}

/** After an operand, a point is followed by an attribute name: Python's parser looks one token further. */
function isUnclosedEnd(tokens: readonly Token[], position: number, isAfterOperand: boolean): boolean {
  const end = tokens[position + (isAfterOperand && tokens[position]?.text === "." ? 1 : 0)];
  return end?.kind === "end" && end.depth > 0;
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #isTentative: boolean;
  position: number;

  constructor(tokens: readonly Token[], position: number, isTentative = false) {
    this.#tokens = tokens;
    this.position = position;
    this.#isTentative = isTentative;
  }

  get token(): Token {
    const token = this.#tokens[Math.min(this.position, this.#tokens.length - 1)];
    if (token === undefined) throw new Error("tokens always end with an end token");
    return token;
  }

  expression(): Expression {
    return this.#binary(["+", "-"], () => this.#binary(["*", "/", "//"], () => this.#unary()));
  }

  #binary(operators: readonly Operator[], operand: () => Expression): Expression {
    let left = operand();
    for (;;) {
      const operator = operators.find((candidate) => this.#is(candidate));
      if (operator === undefined) return left;
      this.position++;
      left = { kind: "binary", operator, left, right: operand() };
    }
  }

  #unary(): Expression {
    for (const sign of ["+", "-"] as const) {
      if (!this.#is(sign)) continue;
      this.position++;
      return { kind: "sign", sign, operand: this.#unary() };
    }
    const base = this.#called();
    if (!this.#is("**")) return base;
    this.position++;
    return { kind: "binary", operator: "**", left: base, right: this.#unary() };
  }

  #called(): Expression {
    let callee = this.#atom();
    while (this.#is("(")) {
      this.position++;
      const star = this.#is("**") ? "**" : this.#is("*") ? "*" : "";
      if (star !== "") this.position++;
      const argument = star === "" && this.#is(")") ? null : this.expression();
      this.#close();
      callee = { kind: "call", callee, star, argument };
    }
    return callee;
  }

  #atom(): Expression {
    const { kind, text } = this.token;
    switch (kind) {
      case "int":
        this.position++;
        return { kind: "value", value: toInt(BigInt(text)) };
      case "float":
        this.position++;
        return { kind: "value", value: new PyFloat(Number(text)) };
      case "ellipsis":
        this.position++;
        return { kind: "value", value: new PyOpaque("ellipsis", "Ellipsis") };
    }
    if (text !== "(") throw new ParseFailure(this.position, false);
    this.position++;
    if (this.#is(")")) {
      this.position++;
      return { kind: "value", value: new PyTuple([]) };
    }
    if (this.#is("*") || (this.#is("**") && !this.#isTentative)) return this.#starredGroup();
    const inner = this.expression();
    this.#close();
    return inner;
  }

  /** `(*x)` is parsed before it is refused. */
  #starredGroup(): never {
    const message = this.#is("**") ? "cannot use double starred expression here" : "cannot use starred expression here";
    const start = this.position++;
    this.expression();
    if (!this.#is(")")) throw new ParseFailure(this.position, true);
    throw new ParseFailure(start, false, message);
  }

  #close(): void {
    if (!this.#is(")")) throw new ParseFailure(this.position, true);
    this.position++;
  }

  #is(operator: string): boolean {
    return this.token.kind === "operator" && this.token.text === operator;
  }
}
