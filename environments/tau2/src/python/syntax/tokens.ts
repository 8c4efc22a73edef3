import { PyFloat, type PyInt, PyOpaque, toInt } from "../values/values.ts";
import { PythonSyntaxError } from "./error.ts";
import { readString, STRING_START } from "./strings.ts";

export type Token = { readonly text: string; readonly line: number } & (
  | { readonly kind: "name" | "keyword" | "operator" | "newline" | "indent" | "dedent" }
  | { readonly kind: "number"; readonly value: PyInt | PyFloat | PyOpaque }
  /** `prefix` is in lower case: some of r, b, f, u. `body` is the source between the quotes, `value` has the escapes decoded. */
  | { readonly kind: "string"; readonly prefix: string; readonly body: string; readonly value: string }
);

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import in is " +
    "lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

/** Keywords that may follow a number without a space: `1if x else 2`. */
const AFTER_NUMBER = /^(?:and|else|for|if|in|is|not|or)(?![\p{ID_Continue}])/u;

const BLANK_LINE = /[ \t\f]*(?:#[^\n]*)?(?:\n|$)/y;
const INDENT = /[ \t\f]*/y;
const BLANK = /[ \t\f\r]+|#[^\n]*/y;
const CONTINUATION = /\\\n/y;
const NAME = /[\p{ID_Start}_][\p{ID_Continue}]*/uy;
const OPERATOR = /\.\.\.|\*\*=?|\/\/=?|<<=?|>>=?|:=|->|!=|[-+*/%&|^@=<>]=|[-+*/%&|^~@=<>()[\]{},:.;]/y;
const FLOAT =
  /(?:\d(?:_?\d)*)?\.\d(?:_?\d)*(?:[eE][+-]?\d(?:_?\d)*)?|\d(?:_?\d)*\.(?:[eE][+-]?\d(?:_?\d)*)?|\d(?:_?\d)*[eE][+-]?\d(?:_?\d)*/y;
const INT = /0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|[1-9](?:_?\d)*|0(?:_?0)*/y;
const DIGITS = /\d(?:_?\d)*/y;
const OPENING: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

/** The tokens of a Python source. Lines inside brackets are joined; the last line ends with a newline token. */
export function tokenize(source: string): readonly Token[] {
  return new Tokenizer(source).readAll();
}

class Tokenizer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  readonly #indents = [0];
  readonly #brackets: string[] = [];
  #at = 0;
  #line = 1;

  constructor(source: string) {
    this.#source = source;
  }

  readAll(): readonly Token[] {
    let isLineStart = true;
    while (this.#at < this.#source.length) {
      if (isLineStart) {
        if (this.#skip(BLANK_LINE)) {
          this.#line++;
          continue;
        }
        this.#readIndent();
        isLineStart = false;
      }
      if (this.#skip(BLANK)) continue;
      if (this.#skip(CONTINUATION)) this.#line++;
      else if (this.#source[this.#at] === "\n") {
        isLineStart = this.#brackets.length === 0;
        if (isLineStart) this.#push({ kind: "newline", text: "\n", line: this.#line }, 0);
        this.#at++;
        this.#line++;
      } else this.#readToken();
    }
    if (this.#brackets.length > 0) throw this.#error(`"${this.#brackets.at(-1)}" was never closed`);
    if (!isLineStart) this.#push({ kind: "newline", text: "", line: this.#line }, 0);
    for (const width of this.#indents) if (width > 0) this.#push({ kind: "dedent", text: "", line: this.#line }, 0);
    return this.#tokens;
  }

  #readIndent(): void {
    const text = this.#match(INDENT) ?? "";
    let width = 0;
    for (const blank of text) width = blank === "\t" ? (Math.floor(width / 8) + 1) * 8 : width + 1;
    if (width > (this.#indents.at(-1) ?? 0)) {
      this.#indents.push(width);
      this.#push({ kind: "indent", text, line: this.#line }, 0);
    }
    while (width < (this.#indents.at(-1) ?? 0)) {
      this.#indents.pop();
      this.#push({ kind: "dedent", text: "", line: this.#line }, 0);
    }
    if (width !== this.#indents.at(-1)) throw this.#error("unindent does not match any outer indentation level");
    this.#at += text.length;
  }

  #readToken(): void {
    const line = this.#line;
    const start = this.#match(STRING_START);
    if (start !== null) {
      const { length, prefix, body, value } = readString(this.#source, this.#at, start, line);
      this.#push({ kind: "string", text: this.#source.slice(this.#at, this.#at + length), line, prefix, body, value }, length);
      this.#line += body.split("\n").length - 1;
      return;
    }
    const name = this.#match(NAME);
    if (name !== null) {
      const text = name.normalize("NFKC");
      this.#push({ kind: KEYWORDS.has(text) ? "keyword" : "name", text, line }, name.length);
      return;
    }
    if (this.#readNumber()) return;
    const operator = this.#match(OPERATOR);
    if (operator === null) throw this.#error(`unexpected character ${JSON.stringify(this.#source[this.#at])}`);
    this.#checkBrackets(operator);
    this.#push({ kind: "operator", text: operator, line }, operator.length);
  }

  #readNumber(): boolean {
    const float = this.#match(FLOAT);
    const text = float ?? this.#match(INT);
    if (text === null) return false;
    const all = this.#match(DIGITS) ?? "";
    // `0123` is an error, but `0123j` is not.
    const isImaginaryAt = (length: number): boolean => this.#source[this.#at + length]?.toLowerCase() === "j";
    const digits = float ?? (all.length > text.length && isImaginaryAt(all.length) ? all : text);
    if (float === null && all.length > digits.length) throw this.#error("leading zeros in an integer are not permitted");
    const isImaginary = isImaginaryAt(digits.length);
    const length = digits.length + (isImaginary ? 1 : 0);
    const rest = this.#source.slice(this.#at + length, this.#at + length + 6);
    if (/^[\p{ID_Continue}]/u.test(rest) && !AFTER_NUMBER.test(rest)) throw this.#error("a number is followed by a letter or digit");
    const plain = digits.replaceAll("_", "");
    const real = float === null ? toInt(BigInt(plain)) : new PyFloat(Number(plain));
    const value = isImaginary ? new PyOpaque("complex", `${plain}j`) : real;
    this.#push({ kind: "number", text: this.#source.slice(this.#at, this.#at + length), line: this.#line, value }, length);
    return true;
  }

  #checkBrackets(operator: string): void {
    if (operator === "(" || operator === "[" || operator === "{") this.#brackets.push(operator);
    const opening = OPENING[operator];
    if (opening !== undefined && this.#brackets.pop() !== opening) throw this.#error(`unmatched "${operator}"`);
  }

  #push(token: Token, length: number): void {
    this.#tokens.push(token);
    this.#at += length;
  }

  #skip(pattern: RegExp): boolean {
    const text = this.#match(pattern);
    this.#at += text?.length ?? 0;
    return text !== null;
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source)?.[0] ?? null;
  }

  #error(message: string): PythonSyntaxError {
    return new PythonSyntaxError(message, this.#line);
  }
}
