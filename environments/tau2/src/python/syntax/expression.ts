import { PyOpaque } from "../values/values.ts";
import { TokenCursor } from "./cursor.ts";
import { PythonSyntaxError } from "./error.ts";
import { checkFormatted } from "./formatted.ts";
import type { Call, Keyword, Node } from "./node.ts";
import { type Token, tokenize } from "./tokens.ts";

const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];
const BINARY = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "//", "%", "@"]];
const NO_STAR = "cannot use starred expression here";

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
export class ExpressionParser extends TokenCursor {
  readonly #explains: boolean;

  /** With `explains`, parentheses that begin with `**` are read to their end, because Python has a message of its own for them. */
  constructor(tokens: readonly Token[], at = 0, explains = true) {
    super(tokens, at);
    this.#explains = explains;
  }

  /** One expression, or a tuple without parentheses. */
  expressions(): Node {
    const { line } = this;
    const first = this.#starOr(() => this.expression());
    if (!this.is(",")) {
      if (first.kind === "star") throw new PythonSyntaxError(NO_STAR, line);
      return first;
    }
    const items = [first];
    while (this.take(",") && this.#startsExpression()) items.push(this.#starOr(() => this.expression()));
    return { kind: "tuple", items, line };
  }

  expression(): Node {
    const { line } = this;
    if (this.take("lambda")) return this.#lambda(line);
    const value = this.#disjunction();
    if (!this.take("if")) return value;
    this.#disjunction();
    this.expect("else");
    this.expression();
    return code("conditional", line);
  }

  #disjunction(): Node {
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
    const base = this.#primary();
    if (!this.take("**")) return isAwaited ? code("await", line) : base;
    return { kind: "binary", operator: "**", left: base, right: this.#factor(), line };
  }

  #primary(): Node {
    let of = this.#atom();
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
        positional.push(this.#named());
        if (this.#comprehension()) {
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
    const start = this.is(":") ? null : this.#starOr(() => this.#named());
    if (start !== null && (start.kind === "star" || !this.is(":"))) return start;
    for (let colons = 0; colons < 2 && this.take(":"); colons++) if (this.#startsExpression()) this.expression();
    return code("slice", line);
  }

  #atom(): Node {
    const { token, line } = this;
    if (token.kind === "string") return this.#strings();
    this.skip(1);
    switch (token.kind) {
      case "name":
        return { kind: "name", name: token.text, line };
      case "number":
        return { kind: "constant", value: token.value, line };
      case "keyword":
        if (token.text === "None") return { kind: "constant", value: null, line };
        if (token.text === "True" || token.text === "False") return { kind: "constant", value: token.text === "True", line };
        break;
      case "operator":
        if (token.text === "...") return { kind: "constant", value: ELLIPSIS, line };
        if (token.text === "(") return this.#parenthesized(line);
        if (token.text === "[") return this.#listed(line);
        if (token.text === "{") return this.#braced(line);
        break;
    }
    this.skip(-1);
    throw this.unexpected(false);
  }

  /** Adjacent string literals are one string. */
  #strings(): Node {
    const { line } = this;
    let value = "";
    let isBytes: boolean | null = null;
    let isFormatted = false;
    for (let token = this.token; token.kind === "string"; token = this.token) {
      const { prefix, body } = token;
      if (isBytes !== null && isBytes !== prefix.includes("b")) throw new PythonSyntaxError("bytes and text are mixed", line);
      isBytes = prefix.includes("b");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: bytes literals hold ASCII only
      if (isBytes && /[^\x00-\x7f]/.test(body)) throw new PythonSyntaxError("bytes hold ASCII only", line);
      if (prefix.includes("f")) {
        isFormatted = true;
        checkFormatted(body, isExpression);
      }
      value += token.value;
      this.skip(1);
    }
    if (isFormatted) return { kind: "formatted", value, line };
    return { kind: "constant", value: isBytes === true ? new PyOpaque("bytes", `b'${value}'`) : value, line };
  }

  #parenthesized(line: number): Node {
    if (this.take(")")) return { kind: "tuple", items: [], line };
    if (this.take("yield")) return this.#yielded(line);
    if (this.#explains && this.take("**")) {
      this.expression();
      this.expect(")");
      throw new PythonSyntaxError("cannot use double starred expression here", line);
    }
    const first = this.#starOr(() => this.#named());
    if (first.kind !== "star" && this.#comprehension()) {
      this.expect(")");
      return code("generator", line);
    }
    if (this.take(")")) {
      if (first.kind === "star") throw new PythonSyntaxError(NO_STAR, line);
      return first;
    }
    return { kind: "tuple", items: this.#rest(first, ")"), line };
  }

  #yielded(line: number): Node {
    if (this.take("from")) this.expression();
    else if (!this.is(")")) this.expressions();
    this.expect(")");
    return code("yield", line);
  }

  #listed(line: number): Node {
    if (this.take("]")) return { kind: "list", items: [], line };
    const first = this.#starOr(() => this.#named());
    if (this.#comprehension()) {
      this.expect("]");
      return code("comprehension", line);
    }
    return { kind: "list", items: this.take("]") ? [first] : this.#rest(first, "]"), line };
  }

  /** The items after the first, up to the closing bracket. */
  #rest(first: Node, close: string): Node[] {
    const items = [first];
    while (this.take(",")) {
      if (this.is(close)) break;
      items.push(this.#starOr(() => this.#named()));
    }
    this.expect(close);
    return items;
  }

  #braced(line: number): Node {
    const entries: (readonly [Node | null, Node])[] = [];
    const items: Node[] = [];
    while (!this.take("}")) {
      if (this.take("**")) entries.push([null, this.#binary(0)]);
      else {
        const key = this.#starOr(() => this.#named());
        if (this.take(":")) entries.push([key, this.expression()]);
        else items.push(key);
      }
      if (entries.length > 0 && items.length > 0) throw new PythonSyntaxError("a dict and a set are mixed", line);
      if (entries.length + items.length === 1 && this.#comprehension()) {
        this.expect("}");
        return code("comprehension", line);
      }
      if (this.take(",")) continue;
      this.expect("}");
      break;
    }
    return items.length > 0 ? { kind: "set", items, line } : { kind: "dict", entries, line };
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

  /** Skips `for x in y if z …` if it is next. */
  #comprehension(): boolean {
    let isThere = false;
    while (this.is("for") || (this.is("async") && this.next.text === "for")) {
      isThere = true;
      this.take("async");
      this.expect("for");
      do this.#target();
      while (this.take(",") && !this.is("in"));
      this.expect("in");
      this.#disjunction();
      while (this.take("if")) this.#disjunction();
    }
    return isThere;
  }

  #target(): void {
    this.take("*");
    const target = this.#primary();
    if (!isTarget(target)) throw new PythonSyntaxError("cannot assign to this expression", target.line);
  }

  #named(): Node {
    if (this.token.kind !== "name" || this.next.text !== ":=") return this.expression();
    const { line } = this;
    this.skip(2);
    this.expression();
    return code("assignment", line);
  }

  #starOr(item: () => Node): Node {
    const { line } = this;
    return this.take("*") ? { kind: "star", of: this.#binary(0), line } : item();
  }

  #startsExpression(): boolean {
    const { kind, text } = this.token;
    if (kind === "operator") return ["(", "[", "{", "+", "-", "~", "...", "*"].includes(text);
    return kind !== "end" && (kind !== "keyword" || ["None", "True", "False", "not", "lambda", "await"].includes(text));
  }
}

const ELLIPSIS = new PyOpaque("ellipsis", "Ellipsis");

/** Whether a node is `...`. */
export function isEllipsis(node: Node): boolean {
  return node.kind === "constant" && node.value === ELLIPSIS;
}

function code(what: string, line: number): Node {
  return { kind: "code", what, line };
}

function isTarget(node: Node): boolean {
  if (node.kind === "list" || node.kind === "tuple") return node.items.every(isTarget);
  return ["name", "attribute", "subscript", "star"].includes(node.kind);
}

function isExpression(source: string): boolean {
  try {
    parsePython(source);
    return true;
  } catch (error) {
    if (error instanceof PythonSyntaxError) return false;
    throw error;
  }
}
