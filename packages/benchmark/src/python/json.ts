import { PyError } from "./errors.ts";

/** How a reader of JSON represents numbers and objects. Python keeps ints and floats apart, and the order of all keys. */
export interface JsonTypes<N, M extends { set(key: string, value: JsonOf<N, M>): unknown }> {
  readonly int: (digits: string) => N;
  readonly float: (value: number) => N;
  readonly members: () => M;
}

export type JsonOf<N, M> = null | boolean | string | N | M | JsonOf<N, M>[];

/**
 * `json.loads`: distinguishes `2` from `2.0`, keeps the order of keys, accepts NaN and Infinity, and raises Python's JSONDecodeError.
 * JSON.parse does none of this.
 */
export function parseJson<N, M extends { set(key: string, value: JsonOf<N, M>): unknown }>(
  text: string,
  types: JsonTypes<N, M>,
): JsonOf<N, M> {
  return new Reader(text, types).readAll();
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings hold no raw control characters
const PLAIN_TEXT = /[^"\\\x00-\x1f]*/y;
const ESCAPED: Readonly<Record<string, string>> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const WORDS = [
  ["null", null],
  ["true", true],
  ["false", false],
] as const;
const FLOATS = [
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
] as const;

class Reader<N, M extends { set(key: string, value: JsonOf<N, M>): unknown }> {
  readonly #text: string;
  readonly #types: JsonTypes<N, M>;
  #at = 0;
  /** Interned strings: keys and short values repeat in every row. */
  readonly #known = new Map<string, string>();

  constructor(text: string, types: JsonTypes<N, M>) {
    this.#text = text;
    this.#types = types;
  }

  readAll(): JsonOf<N, M> {
    if (this.#text.startsWith("\ufeff")) throw this.#error("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
    this.#skipBlanks();
    const value = this.#value();
    this.#skipBlanks();
    if (this.#at !== this.#text.length) throw this.#error("Extra data", this.#at);
    return value;
  }

  #value(): JsonOf<N, M> {
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    if (char === "{") return this.#object();
    if (char === "[") return this.#array();
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text);
    if (number !== null) return this.#number(number);
    for (const [word, value] of WORDS) if (this.#take(word)) return value;
    for (const [word, value] of FLOATS) if (this.#take(word)) return this.#types.float(value);
    throw this.#error("Expecting value", this.#at);
  }

  #number([token, fraction, exponent]: RegExpExecArray): N {
    this.#at += token.length;
    if (fraction !== undefined || exponent !== undefined) return this.#types.float(Number(token));
    return this.#types.int(token);
  }

  #array(): JsonOf<N, M>[] {
    const items: JsonOf<N, M>[] = [];
    this.#at++;
    this.#skipBlanks();
    if (this.#take("]")) return items;
    for (;;) {
      items.push(this.#value());
      this.#skipBlanks();
      if (this.#take("]")) return items;
      if (!this.#take(",")) throw this.#error("Expecting ',' delimiter", this.#at);
      this.#skipBlanks();
    }
  }

  #object(): M {
    const members = this.#types.members();
    this.#at++;
    this.#skipBlanks();
    if (this.#take("}")) return members;
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#error("Expecting property name enclosed in double quotes", this.#at);
      const key = this.#string();
      this.#skipBlanks();
      if (!this.#take(":")) throw this.#error("Expecting ':' delimiter", this.#at);
      this.#skipBlanks();
      members.set(key, this.#value());
      this.#skipBlanks();
      if (this.#take("}")) return members;
      if (!this.#take(",")) throw this.#error("Expecting ',' delimiter", this.#at);
      this.#skipBlanks();
    }
  }

  #string(): string {
    const start = this.#at++;
    let text = "";
    for (;;) {
      PLAIN_TEXT.lastIndex = this.#at;
      const plain = PLAIN_TEXT.exec(this.#text)?.[0] ?? "";
      this.#at += plain.length;
      text += plain;
      const char = this.#text[this.#at];
      if (char === undefined) throw this.#error("Unterminated string starting at", start);
      if (char === '"') break;
      if (char !== "\\") throw this.#error("Invalid control character at", this.#at);
      text += this.#escape(start);
    }
    this.#at++;
    return text.length < 40 ? this.#shared(text) : text;
  }

  #shared(text: string): string {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    this.#known.set(text, text);
    return text;
  }

  #escape(start: number): string {
    const letter = this.#text[this.#at + 1];
    if (letter === undefined) throw this.#error("Unterminated string starting at", start);
    if (letter === "u") {
      const hex = this.#text.slice(this.#at + 2, this.#at + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw this.#error("Invalid \\uXXXX escape", this.#at + 1);
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const char = ESCAPED[letter];
    if (char === undefined) throw this.#error("Invalid \\escape", this.#at);
    this.#at += 2;
    return char;
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  #skipBlanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.#at++;
    }
  }

  #error(message: string, at: number): PyError {
    const before = this.#text.slice(0, at);
    const line = before.split("\n").length;
    return new PyError("JSONDecodeError", `${message}: line ${line} column ${at - before.lastIndexOf("\n")} (char ${at})`);
  }
}
