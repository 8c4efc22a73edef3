import { PyOpaque } from "../values/values.ts";
import { TokenCursor } from "./cursor.ts";
import { PythonSyntaxError } from "./error.ts";
import { checkFormatted } from "./formatted.ts";
import type { Node } from "./node.ts";
import type { Token } from "./tokens.ts";

export const NO_STAR = "cannot use starred expression here";

/** The part of the grammar that needs no operators: names, literals, and what is in brackets. */
export abstract class AtomParser extends TokenCursor {
  readonly #explains: boolean;

  /** With `explains`, parentheses that begin with `**` are read to their end, because Python has a message of its own for them. */
  constructor(tokens: readonly Token[], at = 0, explains = true) {
    super(tokens, at);
    this.#explains = explains;
  }

  /** One expression, or a tuple without parentheses. */
  abstract expressions(): Node;

  abstract expression(): Node;

  /** An expression without `if`, such as the condition of a comprehension. */
  protected abstract condition(): Node;

  /** An expression of arithmetic operators, such as the operand of a star. */
  protected abstract operand(): Node;

  /** An atom with its attributes, calls and subscripts. */
  protected abstract primary(): Node;

  protected abstract isExpression(source: string): boolean;

  protected atom(): Node {
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
        checkFormatted(body, (source) => this.isExpression(source));
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
    const first = this.starOr(() => this.named());
    if (first.kind !== "star" && this.comprehension()) {
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
    const first = this.starOr(() => this.named());
    if (this.comprehension()) {
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
      items.push(this.starOr(() => this.named()));
    }
    this.expect(close);
    return items;
  }

  #braced(line: number): Node {
    const entries: (readonly [Node | null, Node])[] = [];
    const items: Node[] = [];
    while (!this.take("}")) {
      if (this.take("**")) entries.push([null, this.operand()]);
      else {
        const key = this.starOr(() => this.named());
        if (this.take(":")) entries.push([key, this.expression()]);
        else items.push(key);
      }
      if (entries.length > 0 && items.length > 0) throw new PythonSyntaxError("a dict and a set are mixed", line);
      if (entries.length + items.length === 1 && this.comprehension()) {
        this.expect("}");
        return code("comprehension", line);
      }
      if (this.take(",")) continue;
      this.expect("}");
      break;
    }
    return items.length > 0 ? { kind: "set", items, line } : { kind: "dict", entries, line };
  }

  /** Skips `for x in y if z …` if it is next. */
  protected comprehension(): boolean {
    let isThere = false;
    while (this.is("for") || (this.is("async") && this.next.text === "for")) {
      isThere = true;
      this.take("async");
      this.expect("for");
      do this.#target();
      while (this.take(",") && !this.is("in"));
      this.expect("in");
      this.condition();
      while (this.take("if")) this.condition();
    }
    return isThere;
  }

  #target(): void {
    this.take("*");
    const target = this.primary();
    if (!isTarget(target)) throw new PythonSyntaxError("cannot assign to this expression", target.line);
  }

  protected named(): Node {
    if (this.token.kind !== "name" || this.next.text !== ":=") return this.expression();
    const { line } = this;
    this.skip(2);
    this.expression();
    return code("assignment", line);
  }

  protected starOr(item: () => Node): Node {
    const { line } = this;
    return this.take("*") ? { kind: "star", of: this.operand(), line } : item();
  }

  protected startsExpression(): boolean {
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

/** Code that is parsed and has no value here. */
export function code(what: string, line: number): Node {
  return { kind: "code", what, line };
}

function isTarget(node: Node): boolean {
  if (node.kind === "list" || node.kind === "tuple") return node.items.every(isTarget);
  return ["name", "attribute", "subscript", "star"].includes(node.kind);
}
