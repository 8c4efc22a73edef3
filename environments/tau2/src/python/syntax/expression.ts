import { AtomParser, code, NO_STAR } from "./atoms.ts";
import { PythonSyntaxError } from "./error.ts";
import type { Call, Keyword, Node } from "./node.ts";
import { tokenize } from "./tokens.ts";

const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];
const BINARY = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "//", "%", "@"]];

/** Parses one expression. */
export function parsePython(source: string): Node {
  return parse(source, (parser) => parser.expressions());
}

/** Parses a call. Further statements after a `;` must be valid and are ignored, as in the reference. */
export function parseCall(source: string): Call {
  const node = parse(source, (parser) => {
    const first = parser.expressions();
    while (parser.take(";") && !parser.isEnd) parser.expressions();
    return first;
  });
  if (node.kind !== "call") throw new PythonSyntaxError("the statement is not a call");
  return node;
}

function parse(source: string, read: (parser: ExpressionParser) => Node): Node {
  const parser = new ExpressionParser(tokenize(source).filter(({ kind }) => kind !== "newline"));
  return shallow(() => {
    const node = read(parser);
    parser.expectEnd();
    return node;
  });
}

/** Runs a parser, which calls itself for each level of an expression. */
export function shallow<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) throw new PythonSyntaxError("the expression is nested too deeply");
    throw error;
  }
}

/** The grammar of expressions, by recursive descent. */
export class ExpressionParser extends AtomParser {
  /** One expression, or a tuple without parentheses. */
  expressions(): Node {
    const { line } = this;
    const first = this.starOr(() => this.expression());
    if (!this.is(",")) {
      if (first.kind === "star") throw new PythonSyntaxError(NO_STAR, line);
      return first;
    }
    const items = [first];
    while (this.take(",") && this.startsExpression()) items.push(this.starOr(() => this.expression()));
    return { kind: "tuple", items, line };
  }

  expression(): Node {
    const { line } = this;
    if (this.take("lambda")) return this.#lambda(line);
    const value = this.condition();
    if (!this.take("if")) return value;
    this.condition();
    this.expect("else");
    this.expression();
    return code("conditional", line);
  }

  protected condition(): Node {
    return this.#either("or", () => this.#either("and", () => this.#inversion()));
  }

  #either(word: string, operand: () => Node): Node {
    const { line } = this;
    const first = operand();
    if (!this.is(word)) return first;
    while (this.take(word)) operand();
    return code("operation", line);
  }

  #inversion(): Node {
    const { line } = this;
    if (!this.take("not")) return this.#comparison();
    this.#inversion();
    return code("not", line);
  }

  #comparison(): Node {
    const first = this.#binary(0);
    let isComparison = false;
    while (this.#takeComparison()) {
      this.#binary(0);
      isComparison = true;
    }
    return isComparison ? code("comparison", first.line) : first;
  }

  #takeComparison(): boolean {
    if (COMPARISONS.some((operator) => this.take(operator)) || this.take("in")) return true;
    if (this.take("is")) {
      this.take("not");
      return true;
    }
    if (!this.is("not") || this.next.text !== "in") return false;
    this.skip(2);
    return true;
  }

  protected operand(): Node {
    return this.#binary(0);
  }

  #binary(level: number): Node {
    const operators = BINARY[level];
    if (operators === undefined) return this.#factor();
    let left = this.#binary(level + 1);
    for (;;) {
      const operator = operators.find((one) => this.take(one));
      if (operator === undefined) return left;
      left = { kind: "binary", operator, left, right: this.#binary(level + 1), line: left.line };
    }
  }

  #factor(): Node {
    const { line } = this;
    for (const sign of ["+", "-"] as const) if (this.take(sign)) return { kind: "sign", sign, operand: this.#factor(), line };
    if (this.take("~")) {
      this.#factor();
      return code("operation", line);
    }
    const isAwaited = this.take("await");
    const base = this.primary();
    if (!this.take("**")) return isAwaited ? code("await", line) : base;
    return { kind: "binary", operator: "**", left: base, right: this.#factor(), line };
  }

  protected primary(): Node {
    let of = this.atom();
    for (;;) {
      const { line } = this;
      if (this.take(".")) of = { kind: "attribute", of, name: this.name(), line };
      else if (this.take("(")) of = this.#call(of, line);
      else if (this.take("[")) of = { kind: "subscript", of, items: this.#slices(), line };
      else return of;
    }
  }

  #call(of: Node, line: number): Node {
    const positional: Node[] = [];
    const keywords: Keyword[] = [];
    let isUnpacked = false;
    while (!this.take(")")) {
      if (this.take("**")) {
        keywords.push({ name: null, value: this.expression() });
        isUnpacked = true;
      } else if (this.token.kind === "name" && this.next.text === "=") {
        const name = this.name();
        this.expect("=");
        keywords.push({ name, value: this.expression() });
      } else if (!isUnpacked && this.take("*")) {
        positional.push({ kind: "star", of: this.expression(), line });
      } else if (keywords.length > 0) throw new PythonSyntaxError("a positional argument follows a keyword", line);
      else {
        positional.push(this.named());
        if (this.comprehension()) {
          // A bare generator must be the only argument.
          if (positional.length > 1) throw this.unexpected();
          this.expect(")");
          return { kind: "call", of, positional: [code("generator", line)], keywords, line };
        }
      }
      if (this.take(",")) continue;
      this.expect(")");
      break;
    }
    return { kind: "call", of, positional, keywords, line };
  }

  #slices(): readonly Node[] {
    const items: Node[] = [];
    do {
      if (this.is("]")) break;
      items.push(this.#slice());
    } while (this.take(","));
    if (items.length === 0) throw this.unexpected();
    this.expect("]");
    return items;
  }

  #slice(): Node {
    const { line } = this;
    const start = this.is(":") ? null : this.starOr(() => this.named());
    if (start !== null && (start.kind === "star" || !this.is(":"))) return start;
    for (let colons = 0; colons < 2 && this.take(":"); colons++) if (this.startsExpression()) this.expression();
    return code("slice", line);
  }

  #lambda(line: number): Node {
    while (!this.take(":")) {
      const isBare = this.take("/") || (this.take("*") && this.is(","));
      if (!isBare) {
        this.take("**");
        this.name();
      }
      if (this.take("=")) this.expression();
      if (!this.take(",") && !this.is(":")) throw this.unexpected();
    }
    this.expression();
    return code("lambda", line);
  }

  protected isExpression(source: string): boolean {
    try {
      parsePython(source);
      return true;
    } catch (error) {
      if (error instanceof PythonSyntaxError) return false;
      throw error;
    }
  }
}
