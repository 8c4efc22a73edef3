import { RaisedError } from "./raised.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
/** Keeps the order of keys, also of keys such as "10". */
export type JsonObject = ReadonlyMap<string, Json>;

const BLANK = /[ \t\n\r]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: strings of JSON have none
const PLAIN = /[^"\\\x00-\x1f]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORDS: readonly (readonly [string, Json])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
];

/** `json.loads`: also reads NaN and Infinity, which JSON does not have. Raises JSONDecodeError. */
export function readJson(text: string): Json {
  return readFast(text) ?? readOrdered(text);
}

/** Most texts: what JavaScript's own reader reads, in the same order. Null for the others, and for the value null. */
function readFast(text: string): Json {
  try {
    return convert(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Throws on a key such as "10": JavaScript has moved it before the others. */
function convert(value: unknown): Json {
  if (value === null || typeof value !== "object") return value as Json;
  if (Array.isArray(value)) return value.map(convert);
  const members = new Map<string, Json>();
  for (const [key, member] of Object.entries(value)) {
    if (/^\d/.test(key)) throw new Error(`the order of the key '${key}' is lost`);
    members.set(key, convert(member));
  }
  return members;
}

function readOrdered(text: string): Json {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): Json {
    this.#blank();
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    if (char === "{") return this.#object();
    if (char === "[") return this.#list();
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    return Number(this.#token(NUMBER) || this.#fail("a value"));
  }

  end(): void {
    this.#blank();
    if (this.#at < this.#text.length) this.#fail("the end");
  }

  #object(): JsonObject {
    const members = new Map<string, Json>();
    this.#at++;
    this.#blank();
    if (this.#take("}")) return members;
    do {
      this.#blank();
      if (this.#text[this.#at] !== '"') this.#fail("a key in double quotes");
      const key = this.#string();
      this.#blank();
      if (!this.#take(":")) this.#fail("':'");
      members.set(key, this.value());
      this.#blank();
    } while (this.#take(","));
    if (!this.#take("}")) this.#fail("',' or '}'");
    return members;
  }

  #list(): Json[] {
    const items: Json[] = [];
    this.#at++;
    this.#blank();
    if (this.#take("]")) return items;
    do {
      items.push(this.value());
      this.#blank();
    } while (this.#take(","));
    if (!this.#take("]")) this.#fail("',' or ']'");
    return items;
  }

  #string(): string {
    const start = this.#at++;
    let isEscaped = false;
    for (;;) {
      this.#token(PLAIN);
      const char = this.#text[this.#at];
      if (char === '"') break;
      if (char !== "\\") this.#fail("the end of a string");
      isEscaped = true;
      this.#at += 2;
    }
    const raw = this.#text.slice(start, ++this.#at);
    if (!isEscaped) return raw.slice(1, -1);
    try {
      return JSON.parse(raw);
    } catch {
      return this.#fail("an escape sequence of JSON");
    }
  }

  #blank(): void {
    this.#token(BLANK);
  }

  #token(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #fail(expected: string): never {
    throw new RaisedError("JSONDecodeError", `invalid JSON: expected ${expected} at character ${this.#at}`);
  }
}
