import { PyError } from "../errors.ts";
import { Dict, PyFloat, type PyValue, toInt } from "../values/values.ts";

/**
 * `json.loads`: distinguishes `2` from `2.0`, keeps ints exact, accepts NaN and Infinity, and raises Python's errors.
 * JSON.parse does none of this, and it reorders keys that look like array indices.
 */
export function readJson(text: string): PyValue {
  return new Reader(text).readAll();
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings hold no raw control characters
const PLAIN_TEXT = /[^"\\\x00-\x1f]*/y;
const ESCAPED: Readonly<Record<string, string>> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const WORDS: readonly (readonly [string, PyValue])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", new PyFloat(Number.NaN)],
  ["Infinity", new PyFloat(Number.POSITIVE_INFINITY)],
  ["-Infinity", new PyFloat(Number.NEGATIVE_INFINITY)],
];

class Reader {
  readonly #text: string;
  #at = 0;
  /** Interned strings: keys and short values repeat in every row. */
  readonly #known = new Map<string, string>();

  constructor(text: string) {
    this.#text = text;
  }

  readAll(): PyValue {
    if (this.#text.startsWith("\ufeff")) throw this.#error("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
    this.#skipBlanks();
    const value = this.#value();
    this.#skipBlanks();
    if (this.#at !== this.#text.length) throw this.#error("Extra data", this.#at);
    return value;
  }

  #value(): PyValue {
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    if (char === "{") return this.#object();
    if (char === "[") return this.#array();
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text);
    if (number !== null) return this.#number(number);
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    throw this.#error("Expecting value", this.#at);
  }

  #number(match: RegExpExecArray): PyValue {
    const token = match[0];
    this.#at += token.length;
    if (match[1] !== undefined || match[2] !== undefined) return new PyFloat(Number(token));
    return token.length < 16 ? Number(token) + 0 : toInt(BigInt(token));
  }

  #array(): PyValue {
    const items: PyValue[] = [];
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

  #object(): PyValue {
    const dict = new Dict();
    this.#at++;
    this.#skipBlanks();
    if (this.#take("}")) return dict;
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#error("Expecting property name enclosed in double quotes", this.#at);
      const key = this.#string();
      this.#skipBlanks();
      if (!this.#take(":")) throw this.#error("Expecting ':' delimiter", this.#at);
      this.#skipBlanks();
      dict.set(key, this.#value());
      this.#skipBlanks();
      if (this.#take("}")) return dict;
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

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
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
