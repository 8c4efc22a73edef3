import type { Token } from "../../python/syntax/tokens.ts";
import { PyFloat, PyOpaque } from "../../python/values/values.ts";
import { ReaderError } from "../error.ts";
import { readTokens } from "./source.ts";

export type Expression = { line: number } & (
  | { kind: "constant"; value: string | number | boolean | null; isFormatted?: boolean }
  | { kind: "ellipsis" }
  | { kind: "name"; name: string }
  | { kind: "attribute"; of: Expression; name: string }
  | { kind: "call"; of: Expression; positional: Expression[]; named: Map<string, Expression> }
  | { kind: "subscript"; of: Expression; items: Expression[] }
  | { kind: "sequence"; items: Expression[] }
  | { kind: "mapping"; entries: [Expression, Expression][] }
  | { kind: "binary"; operator: string; left: Expression; right: Expression }
  | { kind: "negative"; of: Expression }
  /** Code that is not parsed further, such as a lambda, a comprehension or a condition. */
  | { kind: "code" }
);

const CONSTANTS = new Map<string, boolean | null>([
  ["None", null],
  ["True", true],
  ["False", false],
]);
const LEVELS = [["|"], ["+", "-"], ["*"]];
const MAX_DEPTH = 100;

export function parseExpression(source: string): Expression {
  const parser = new Parser(readTokens(source).filter((token) => token.kind !== "newline"));
  const expression = parser.expression();
  parser.end();
  return expression;
}

/** Parses the expressions of one logical line. */
export class Parser {
  private at = 0;
  private depth = 0;
  private readonly tokens: readonly Token[];

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens;
  }

  get line(): number {
    return (this.tokens[this.at] ?? this.tokens.at(-1))?.line ?? 1;
  }

  get isAtEnd(): boolean {
    return this.at >= this.tokens.length;
  }

  is(text: string): boolean {
    const token = this.tokens[this.at];
    return token !== undefined && isWord(token) && token.text === text;
  }

  take(text: string): boolean {
    if (!this.is(text)) return false;
    this.at++;
    return true;
  }

  expect(text: string): void {
    if (!this.take(text)) throw this.unexpected(`"${text}"`);
  }

  name(): string {
    const token = this.tokens[this.at];
    if (token?.kind !== "name") throw this.unexpected("a name");
    this.at++;
    return token.text;
  }

  end(): void {
    if (!this.isAtEnd) throw this.unexpected("the end of the line");
  }

  expression(level = 0): Expression {
    const operators = LEVELS[level];
    if (!operators) return this.unary();
    let left = this.expression(level + 1);
    for (;;) {
      const operator = operators.find((text) => this.is(text));
      if (operator === undefined) return left;
      this.at++;
      left = { kind: "binary", operator, left, right: this.expression(level + 1), line: left.line };
    }
  }

  /** An expression up to a comma or a closing bracket; unsupported code is skipped up to there. */
  argument(): Expression {
    const start = this.at;
    const line = this.line;
    try {
      const expression = this.expression();
      if (this.isAtEnd || [",", ")", "]", "}", ":", "="].some((text) => this.is(text))) return expression;
    } catch (error) {
      if (!(error instanceof ReaderError)) throw error;
    }
    this.at = start;
    this.skip();
    if (this.at === start) throw this.unexpected("an expression");
    return { kind: "code", line };
  }

  private skip(): void {
    for (let open = 0; !this.isAtEnd; this.at++) {
      const token = this.tokens[this.at] as Token;
      if (token.kind !== "operator") continue;
      if ("([{".includes(token.text)) open++;
      else if (open === 0 && (token.text === "," || ")]}".includes(token.text))) return;
      else if (")]}".includes(token.text)) open--;
    }
  }

  private unary(): Expression {
    if (++this.depth > MAX_DEPTH) throw new ReaderError("an expression is nested too deeply", this.line);
    try {
      const line = this.line;
      if (this.take("-")) return { kind: "negative", of: this.unary(), line };
      return this.postfix(this.atom());
    } finally {
      this.depth--;
    }
  }

  private postfix(atom: Expression): Expression {
    let of = atom;
    for (;;) {
      const line = this.line;
      if (this.take(".")) of = { kind: "attribute", of, name: this.name(), line };
      else if (this.take("(")) of = { kind: "call", of, ...this.callArguments(), line };
      else if (this.take("[")) of = { kind: "subscript", of, items: this.items("]"), line };
      else return of;
    }
  }

  private callArguments(): { positional: Expression[]; named: Map<string, Expression> } {
    const positional: Expression[] = [];
    const named = new Map<string, Expression>();
    while (!this.take(")")) {
      const isSpread = this.take("*") || this.take("**");
      const value = this.argument();
      if (isSpread) positional.push({ kind: "code", line: value.line });
      else if (value.kind === "name" && this.take("=")) named.set(value.name, this.argument());
      else positional.push(value);
      if (!this.take(",") && !this.is(")")) throw this.unexpected('"," or ")"');
    }
    return { positional, named };
  }

  private items(close: string): Expression[] {
    const items: Expression[] = [];
    while (!this.take(close)) {
      items.push(this.argument());
      if (!this.take(",") && !this.is(close)) throw this.unexpected(`"," or "${close}"`);
    }
    return items;
  }

  private atom(): Expression {
    const token = this.tokens[this.at];
    const line = this.line;
    if (token?.kind === "string") return this.strings();
    if (token?.kind === "number") {
      this.at++;
      return { kind: "constant", value: numberOf(token), line };
    }
    if (token?.kind === "name") return { kind: "name", name: this.name(), line };
    const constant = token?.kind === "keyword" ? CONSTANTS.get(token.text) : undefined;
    if (constant !== undefined) {
      this.at++;
      return { kind: "constant", value: constant, line };
    }
    if (this.take("...")) return { kind: "ellipsis", line };
    if (this.take("[")) return { kind: "sequence", items: this.items("]"), line };
    if (this.take("{")) return this.braces(line);
    if (this.take("(")) return this.group(line);
    throw this.unexpected("an expression");
  }

  /** Adjacent string literals are one string. */
  private strings(): Expression {
    const line = this.line;
    let value = "";
    let isFormatted = false;
    for (let token = this.tokens[this.at]; token?.kind === "string"; token = this.tokens[++this.at]) {
      value += token.value;
      isFormatted ||= token.prefix.includes("f");
    }
    return { kind: "constant", value, isFormatted, line };
  }

  private group(line: number): Expression {
    const items = this.items(")");
    const isTuple = items.length !== 1 || (this.tokens[this.at - 2] as { text?: string }).text === ",";
    if (isTuple) return { kind: "sequence", items, line };
    return items[0] as Expression;
  }

  private braces(line: number): Expression {
    const entries: [Expression, Expression][] = [];
    const items: Expression[] = [];
    while (!this.take("}")) {
      const key = this.argument();
      if (this.take(":")) entries.push([key, this.argument()]);
      else items.push(key);
      if (!this.take(",") && !this.is("}")) throw this.unexpected('"," or "}"');
    }
    return items.length > 0 ? { kind: "sequence", items, line } : { kind: "mapping", entries, line };
  }

  private unexpected(wanted: string): ReaderError {
    const token = this.tokens[this.at];
    const found = token === undefined ? "the end of the line" : isWord(token) ? `"${token.text}"` : `a ${token.kind}`;
    return new ReaderError(`expected ${wanted}, found ${found}`, this.line);
  }
}

function isWord({ kind }: Token): boolean {
  return kind === "name" || kind === "keyword" || kind === "operator";
}

function numberOf({ value, text, line }: Extract<Token, { kind: "number" }>): number {
  if (value instanceof PyOpaque) throw new ReaderError(`the complex number ${text} is not supported`, line);
  return value instanceof PyFloat ? value.value : Number(value);
}
