import { PythonSyntaxError } from "./error.ts";
import { PyOpaque } from "../values/values.ts";
import { checkFormatted } from "./formatted.ts";
import type { Keyword, Node } from "./node.ts";
import { TokenCursor } from "./cursor.ts";

const OTHER = (what: string): Node => ({ kind: "other", what });
const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];
const BINARY = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "//", "%", "@"]];

/** Parses one expression. */
export function parsePython(source: string): Node {
  const parser = new Parser(source);
  const node = parser.expressions();
  parser.expectEnd();
  return node;
}

/** Parses a call. Further statements after a `;` must be valid and are ignored, as in the reference. */
export function parseCall(source: string): Extract<Node, { kind: "call" }> {
  const parser = new Parser(source);
  const node = parser.expressions();
  while (parser.take(";") && !parser.isEnd) parser.expressions();
  parser.expectEnd();
  if (node.kind !== "call") throw new PythonSyntaxError("the statement is not a call");
  return node;
}

/** The grammar of expressions, by recursive descent. */
class Parser extends TokenCursor {
  /** One expression, or a tuple without parentheses. */
  expressions(): Node {
    const first = this.#starOr(() => this.expression());
    if (!this.is(",")) {
      if (first.kind === "other" && first.what === "star") throw new PythonSyntaxError("a starred expression is not allowed here");
      return first;
    }
    const items = [first];
    while (this.take(",") && this.#startsExpression()) items.push(this.#starOr(() => this.expression()));
    return { kind: "tuple", items };
  }

  expression(): Node {
    if (this.take("lambda")) return this.#lambda();
    const value = this.#disjunction();
    if (!this.take("if")) return value;
    this.#disjunction();
    this.expect("else");
    this.expression();
    return OTHER("conditional");
  }

  #disjunction(): Node {
    return this.#chain(["or"], () => this.#chain(["and"], () => this.#inversion()));
  }

  #inversion(): Node {
    if (!this.take("not")) return this.#comparison();
    this.#inversion();
    return OTHER("not");
  }

  #comparison(): Node {
    const first = this.#binary(0);
    let isComparison = false;
    while (this.#takeComparison()) {
      this.#binary(0);
      isComparison = true;
    }
    return isComparison ? OTHER("comparison") : first;
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
    return operators === undefined ? this.#factor() : this.#chain(operators, () => this.#binary(level + 1));
  }

  #chain(operators: readonly string[], operand: () => Node): Node {
    const first = operand();
    let isChain = false;
    while (operators.some((operator) => this.take(operator))) {
      operand();
      isChain = true;
    }
    return isChain ? OTHER("operation") : first;
  }

  #factor(): Node {
    for (const sign of ["+", "-"] as const) if (this.take(sign)) return { kind: "sign", sign, operand: this.#factor() };
    if (this.take("~")) {
      this.#factor();
      return OTHER("operation");
    }
    const isAwaited = this.take("await");
    const base = this.#primary();
    if (!this.take("**")) return isAwaited ? OTHER("await") : base;
    this.#factor();
    return OTHER("operation");
  }

  #primary(): Node {
    let node = this.#atom();
    for (;;) {
      if (this.take(".")) node = { kind: "attribute", of: node, name: this.name() };
      else if (this.take("(")) node = this.#call(node);
      else if (this.take("[")) {
        this.#slices();
        node = OTHER("subscript");
      } else return node;
    }
  }

  #call(callee: Node): Node {
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
        this.expression();
        positional.push(OTHER("star"));
      } else if (keywords.length > 0) throw new PythonSyntaxError("a positional argument follows a keyword");
      else {
        positional.push(this.#named());
        if (this.#comprehension()) {
          // A bare generator must be the only argument.
          if (positional.length > 1) throw this.unexpected();
          this.expect(")");
          break;
        }
      }
      if (this.take(",")) continue;
      this.expect(")");
      break;
    }
    return { kind: "call", callee, positional, keywords };
  }

  #slices(): void {
    do {
      if (this.is("]")) break;
      if (this.is("*")) {
        this.#starOr(() => this.expression());
        continue;
      }
      if (!this.is(":")) this.#named();
      for (let colons = 0; colons < 2 && this.take(":"); colons++) if (this.#startsExpression()) this.expression();
    } while (this.take(","));
    if (this.previous?.text === "[") throw this.unexpected();
    this.expect("]");
  }

  #atom(): Node {
    const token = this.token;
    this.skip(1);
    switch (token.kind) {
      case "name":
        return { kind: "name", name: token.text };
      case "number":
        return { kind: "constant", value: token.value };
      case "string":
        this.skip(-1);
        return this.#strings();
      case "keyword":
        if (token.text === "None") return { kind: "constant", value: null };
        if (token.text === "True" || token.text === "False") return { kind: "constant", value: token.text === "True" };
        break;
      case "operator":
        if (token.text === "...") return { kind: "constant", value: new PyOpaque("ellipsis", "Ellipsis") };
        if (token.text === "(") return this.#parenthesized();
        if (token.text === "[") return this.#listed();
        if (token.text === "{") return this.#braced();
        break;
    }
    this.skip(-1);
    throw this.unexpected();
  }

  #strings(): Node {
    let value = "";
    let isBytes: boolean | null = null;
    let isFormatted = false;
    for (let token = this.token; token.kind === "string"; token = this.token) {
      const { prefix, body } = token;
      if (isBytes !== null && isBytes !== prefix.includes("b")) throw new PythonSyntaxError("bytes and text are mixed");
      isBytes = prefix.includes("b");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: bytes literals hold ASCII only
      if (isBytes && /[^\x00-\x7f]/.test(body)) throw new PythonSyntaxError("bytes hold ASCII only");
      if (prefix.includes("f")) {
        isFormatted = true;
        checkFormatted(body, isExpression);
      }
      value += token.value;
      this.skip(1);
    }
    if (isFormatted) return OTHER("formatted string");
    return { kind: "constant", value: isBytes === true ? new PyOpaque("bytes", `b'${value}'`) : value };
  }

  #parenthesized(): Node {
    if (this.take(")")) return { kind: "tuple", items: [] };
    if (this.take("yield")) return this.#yielded();
    const first = this.#starOr(() => this.#named());
    const isStarred = first.kind === "other" && first.what === "star";
    if (!isStarred && this.#comprehension()) {
      this.expect(")");
      return OTHER("generator");
    }
    if (this.take(")")) {
      if (isStarred) throw new PythonSyntaxError("a starred expression is not allowed here");
      return first;
    }
    return { kind: "tuple", items: this.#rest(first, ")") };
  }

  #yielded(): Node {
    if (this.take("from")) this.expression();
    else if (!this.is(")")) this.expressions();
    this.expect(")");
    return OTHER("yield");
  }

  #listed(): Node {
    if (this.take("]")) return { kind: "list", items: [] };
    const first = this.#starOr(() => this.#named());
    if (this.#comprehension()) {
      this.expect("]");
      return OTHER("comprehension");
    }
    return { kind: "list", items: this.take("]") ? [first] : this.#rest(first, "]") };
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

  #braced(): Node {
    if (this.take("}")) return { kind: "dict", entries: [] };
    const first = this.#entryOrItem();
    if (this.#comprehension()) {
      this.expect("}");
      return OTHER("comprehension");
    }
    const entries = [first];
    while (this.take(",")) {
      if (this.is("}")) break;
      const entry = this.#entryOrItem();
      if ((entry === null) !== (first === null)) throw new PythonSyntaxError("a dict and a set are mixed");
      entries.push(entry);
    }
    this.expect("}");
    return first === null ? OTHER("set") : { kind: "dict", entries: entries.filter((entry) => entry !== null) };
  }

  /** An entry of a dict, or null for an item of a set. */
  #entryOrItem(): readonly [Node | null, Node] | null {
    if (this.take("**")) return [null, this.#binary(0)];
    const key = this.#starOr(() => this.#named());
    return this.take(":") ? [key, this.expression()] : null;
  }

  #lambda(): Node {
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
    return OTHER("lambda");
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
    if (!isTarget(target)) throw new PythonSyntaxError("cannot assign to this expression");
  }

  #named(): Node {
    if (this.token.kind !== "name" || this.next.text !== ":=") return this.expression();
    this.skip(2);
    this.expression();
    return OTHER("assignment");
  }

  #starOr(item: () => Node): Node {
    if (!this.take("*")) return item();
    this.#binary(0);
    return OTHER("star");
  }

  #startsExpression(): boolean {
    const { kind, text } = this.token;
    if (kind === "operator") return ["(", "[", "{", "+", "-", "~", "...", "*"].includes(text);
    return kind !== "end" && (kind !== "keyword" || ["None", "True", "False", "not", "lambda", "await"].includes(text));
  }
}

function isTarget(node: Node): boolean {
  if (node.kind === "list" || node.kind === "tuple") return node.items.every(isTarget);
  return node.kind === "name" || node.kind === "attribute" || (node.kind === "other" && ["subscript", "star"].includes(node.what));
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
