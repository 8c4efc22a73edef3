import type { Element } from "./element.ts";
import { notWellFormed } from "./error.ts";
import { NC_NAME } from "./names.ts";
import { type Bindings, bind, expandAttributes, expandElement, ROOT_BINDINGS } from "./namespaces.ts";

const NAME = new RegExp(`${NC_NAME}(?::${NC_NAME})?`, "y");
const ASCII_NAME = /[A-Za-z_][\w.-]*(?=[ \t\r\n=/>])/y;
const TARGET = new RegExp(NC_NAME, "y");
const BLANK = /[ \t\r\n]*/y;
const VALUE = /"[^<"]*"|'[^<']*'/y;
const TEXT = /[^<]*/y;
const REFERENCE = /&(?:#(\d+);|#x([0-9a-fA-F]+);|([^;&]*;)?)/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
/** Characters that XML does not allow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are not allowed
const FORBIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;

interface Open {
  readonly tag: string;
  readonly bindings: Bindings;
  readonly element: Element & { readonly children: Element[] };
}

/** Reads one element with its content: XML 1.0 with namespaces, without a document type. Raises ParseError. */
export function readXml(text: string): Element {
  if (FORBIDDEN.test(text) || !text.isWellFormed()) notWellFormed("it has a character that XML does not allow");
  return new Reader(text).root();
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  root(): Element {
    const path: Open[] = [];
    for (;;) {
      const parent = path.at(-1);
      if (parent !== undefined) checkText(this.#token(TEXT));
      if (this.#take("</")) {
        this.#endTag(path.pop());
        if (parent !== undefined && path.length === 0) return this.#whole(parent.element);
      } else if (this.#take("<!")) this.#declaration(parent !== undefined);
      else if (this.#take("<?")) this.#instruction();
      else if (this.#take("<")) {
        const { open, isEmpty } = this.#startTag(parent?.bindings ?? ROOT_BINDINGS);
        parent?.element.children.push(open.element);
        if (!isEmpty) path.push(open);
        else if (parent === undefined) return this.#whole(open.element);
      } else notWellFormed(`it ends inside of '${parent?.tag ?? "nothing"}'`);
    }
  }

  #whole(element: Element): Element {
    if (this.#at < this.#text.length) notWellFormed("text follows the root element");
    return element;
  }

  #startTag(outer: Bindings): { readonly open: Open; readonly isEmpty: boolean } {
    const tag = this.#name();
    const raw = new Map<string, string>();
    let isEmpty = false;
    for (;;) {
      const hasBlank = this.#token(BLANK) !== "";
      if (this.#take(">")) break;
      if (this.#take("/>")) {
        isEmpty = true;
        break;
      }
      if (!hasBlank) notWellFormed(`an attribute of '${tag}' is not separated`);
      const name = this.#name();
      this.#token(BLANK);
      if (!this.#take("=")) notWellFormed(`the attribute '${name}' has no value`);
      this.#token(BLANK);
      const quoted = this.#token(VALUE);
      if (quoted === "") notWellFormed(`the value of '${name}' is not quoted, has no end or has '<'`);
      if (raw.has(name)) notWellFormed(`the attribute '${name}' occurs twice`);
      raw.set(name, attributeValue(quoted.slice(1, -1)));
    }
    const bindings = bind(outer, raw);
    const element = { name: expandElement(tag, bindings), attributes: expandAttributes(raw, bindings), children: [] };
    return { open: { tag, bindings, element }, isEmpty };
  }

  #endTag(open: Open | undefined): void {
    const name = this.#name();
    this.#token(BLANK);
    if (!this.#take(">")) notWellFormed(`the end tag of '${name}' is not closed`);
    if (name !== open?.tag) notWellFormed(`'${open?.tag ?? "nothing"}' is ended by '${name}'`);
  }

  #declaration(isInside: boolean): void {
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
    const target = this.#token(TARGET);
    if (target === "" || target.toLowerCase() === "xml") notWellFormed("a processing instruction has no valid name");
    if (this.#take("?>")) return;
    if (this.#token(BLANK) === "") notWellFormed("a processing instruction has no valid name");
    this.#until("?>");
  }

  #until(end: string): void {
    const at = this.#text.indexOf(end, this.#at);
    if (at < 0) notWellFormed(`'${end}' is missing`);
    this.#at = at + end.length;
  }

  #name(): string {
    return this.#token(ASCII_NAME) || this.#token(NAME) || notWellFormed(`a name is expected at character ${this.#at}`);
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

function checkText(text: string): void {
  if (text === "") return;
  if (text.includes("]]>")) notWellFormed("text has ']]>'");
  resolveReferences(text);
}

/** Line ends and tabs become blanks; those that are written as references stay. */
function attributeValue(raw: string): string {
  return resolveReferences(/[\t\n\r]/.test(raw) ? raw.replace(/\r\n|[\t\n\r]/g, " ") : raw);
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
