import type { Attribute, Document, Element } from "./element.ts";
import { notWellFormed } from "./error.ts";
import { NC_NAME } from "./names.ts";
import { type Bindings, bind, expandAttributes, expandElement, ROOT_BINDINGS, refuseDuplicates } from "./namespaces.ts";

const NAME = new RegExp(`${NC_NAME}(?::${NC_NAME})?`, "y");
const TARGET = new RegExp(NC_NAME, "y");
const REFERENCE = /&(?:#(\d+);|#x([0-9a-fA-F]+);|([^;&]*;)?)/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
/** Characters that XML does not allow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are not allowed
const FORBIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;

const [LESS, GREATER, SLASH, EXCLAMATION, QUESTION, EQUALS, AMPERSAND, DOUBLE_QUOTE, SINGLE_QUOTE] = [
  0x3c, 0x3e, 0x2f, 0x21, 0x3f, 0x3d, 0x26, 0x22, 0x27,
];

/** An element whose end tag has not been read. */
interface Open {
  readonly tag: string;
  readonly bindings: Bindings;
  readonly element: { end: number };
}

/** Reads one element with its content: XML 1.0 with namespaces, without a document type. Raises ParseError. */
export function readXml(text: string): Document {
  if (FORBIDDEN.test(text) || !text.isWellFormed()) notWellFormed("it has a character that XML does not allow");
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  readonly #elements: Element[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Document {
    const path: Open[] = [];
    do {
      const parent = path.at(-1);
      if (parent !== undefined) this.#content();
      if (this.#text.charCodeAt(this.#at) !== LESS) notWellFormed(`it ends inside of '${parent?.tag ?? "nothing"}'`);
      const next = this.#text.charCodeAt(++this.#at);
      if (next === SLASH) this.#endTag(path.pop());
      else if (next === EXCLAMATION) this.#declaration(parent !== undefined);
      else if (next === QUESTION) this.#instruction();
      else {
        const open = this.#startTag(parent?.bindings ?? ROOT_BINDINGS);
        if (open !== null) path.push(open);
      }
    } while (path.length > 0 || this.#elements.length === 0);
    if (this.#at < this.#text.length) notWellFormed("text follows the root element");
    return this.#elements;
  }

  /** Null if the element is empty. */
  #startTag(outer: Bindings): Open | null {
    const tag = this.#name();
    const raw: Attribute[] = [];
    for (;;) {
      const start = this.#at;
      this.#blank();
      const next = this.#text.charCodeAt(this.#at);
      if (next === GREATER || next === SLASH) break;
      if (this.#at === start) notWellFormed(`an attribute of '${tag}' is not separated`);
      const name = this.#name();
      this.#blank();
      if (!this.#take("=")) notWellFormed(`the attribute '${name}' has no value`);
      this.#blank();
      raw.push({ name, value: this.#value(name) });
    }
    const isEmpty = this.#take("/");
    if (!this.#take(">")) notWellFormed(`the start tag of '${tag}' is not closed`);
    refuseDuplicates(raw);
    const bindings = bind(outer, raw);
    const element = { name: expandElement(tag, bindings), attributes: expandAttributes(raw, bindings), end: this.#elements.length + 1 };
    this.#elements.push(element);
    return isEmpty ? null : { tag, bindings, element };
  }

  #endTag(open: Open | undefined): void {
    if (open === undefined) notWellFormed("an end tag has no start tag");
    this.#at++;
    if (!this.#take(`${open.tag}>`)) {
      const name = this.#name();
      this.#blank();
      if (!this.#take(">")) notWellFormed(`the end tag of '${name}' is not closed`);
      if (name !== open.tag) notWellFormed(`'${open.tag}' is ended by '${name}'`);
    }
    open.element.end = this.#elements.length;
  }

  /** A quoted value, with its references resolved. */
  #value(name: string): string {
    const quote = this.#text.charCodeAt(this.#at);
    const start = this.#at + 1;
    if (quote !== DOUBLE_QUOTE && quote !== SINGLE_QUOTE) notWellFormed(`the value of '${name}' is not quoted`);
    let isPlain = true;
    let end = start;
    for (let code = this.#text.charCodeAt(end); code !== quote; code = this.#text.charCodeAt(++end)) {
      if (code === LESS || end >= this.#text.length) notWellFormed(`the value of '${name}' has no end or has '<'`);
      if (code === AMPERSAND || code < 0x20) isPlain = false;
    }
    this.#at = end + 1;
    const raw = this.#text.slice(start, end);
    return isPlain ? raw : attributeValue(raw);
  }

  /** Text up to the next tag, or to the end. */
  #content(): void {
    if (this.#text.charCodeAt(this.#at) === LESS) return;
    const next = this.#text.indexOf("<", this.#at);
    const end = next < 0 ? this.#text.length : next;
    checkText(this.#text.slice(this.#at, end));
    this.#at = end;
  }

  #declaration(isInside: boolean): void {
    this.#at++;
    if (this.#take("--")) this.#comment();
    else if (isInside && this.#take("[CDATA[")) this.#until("]]>");
    else notWellFormed("a declaration is not allowed here");
  }

  #comment(): void {
    const end = this.#text.indexOf("--", this.#at);
    if (end < 0 || this.#text[end + 2] !== ">") notWellFormed("a comment has no end, or has '--'");
    this.#at = end + 3;
  }

  #instruction(): void {
    this.#at++;
    const target = this.#token(TARGET);
    if (target === "" || target.toLowerCase() === "xml") notWellFormed("a processing instruction has no valid name");
    if (this.#take("?>")) return;
    const start = this.#at;
    this.#blank();
    if (this.#at === start) notWellFormed("a processing instruction has no valid name");
    this.#until("?>");
  }

  #until(end: string): void {
    const at = this.#text.indexOf(end, this.#at);
    if (at < 0) notWellFormed(`'${end}' is missing`);
    this.#at = at + end.length;
  }

  #name(): string {
    const start = this.#at;
    const end = asciiNameEnd(this.#text, start);
    if (end === start) return this.#token(NAME) || notWellFormed(`a name is expected at character ${start}`);
    this.#at = end;
    return this.#text.slice(start, end);
  }

  #blank(): void {
    while (isBlank(this.#text.charCodeAt(this.#at))) this.#at++;
  }

  #take(literal: string): boolean {
    if (!this.#text.startsWith(literal, this.#at)) return false;
    this.#at += literal.length;
    return true;
  }

  #token(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }
}

/** Where a name of ASCII letters, digits, `_`, `.` and `-` ends; its start if the name has other characters. */
function asciiNameEnd(text: string, start: number): number {
  let at = start;
  let code = text.charCodeAt(at);
  if (!isLetter(code)) return start;
  do code = text.charCodeAt(++at);
  while (isLetter(code) || (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2e);
  return isBlank(code) || code === EQUALS || code === SLASH || code === GREATER ? at : start;
}

function isLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x09 || code === 0x0d;
}

function checkText(text: string): void {
  if (text.includes("]]>")) notWellFormed("text has ']]>'");
  resolveReferences(text);
}

/** Line ends and tabs become blanks; those that are written as references stay. */
function attributeValue(raw: string): string {
  return resolveReferences(raw.replace(/\r\n|[\t\n\r]/g, " "));
}

function resolveReferences(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (reference: string, decimal?: string, hex?: string, entity?: string) => {
    if (decimal !== undefined) return character(Number(decimal));
    if (hex !== undefined) return character(Number.parseInt(hex, 16));
    const name = entity?.slice(0, -1) ?? "";
    const known = Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
    return known ?? notWellFormed(`'${reference}' is not defined`);
  });
}

function character(code: number): string {
  const isAllowed = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) && !FORBIDDEN.test(String.fromCodePoint(code));
  return isAllowed ? String.fromCodePoint(code) : notWellFormed(`the character ${code} is not allowed`);
}
