import { SPACES } from "@aenv/benchmark";

/** `M`: `^` and `$` match at every line. `S`: a dot also matches a newline. */
export type Flags = "" | "M" | "S" | "MS";

/** A regular expression of Python, compiled for JavaScript so that it matches the same text. */
export class Pattern {
  readonly #sticky: RegExp;
  readonly #global: RegExp;

  constructor(source: string, flags: Flags = "") {
    const translated = translate(source, flags);
    this.#sticky = new RegExp(translated, "uy");
    this.#global = new RegExp(translated, "gu");
  }

  /** `re.match`: at the start of the text. */
  match(text: string): RegExpExecArray | null {
    return findFrom(this.#sticky, text, 0);
  }

  /** `re.search`: the first match anywhere. */
  search(text: string): RegExpExecArray | null {
    return findFrom(this.#global, text, 0);
  }

  /** `pattern.match(text, at)`: where the match ends, or -1. */
  endAt(text: string, at: number): number {
    const sticky = this.#sticky;
    sticky.lastIndex = at;
    return sticky.test(text) ? sticky.lastIndex : -1;
  }

  /** `re.finditer` */
  findAll(text: string): RegExpExecArray[] {
    const all: RegExpExecArray[] = [];
    const global = this.#global;
    global.lastIndex = 0;
    for (let found = global.exec(text); found !== null; found = global.exec(text)) all.push(found);
    return all;
  }

  /** `re.sub` with a literal replacement. */
  replace(text: string, replacement: string): string {
    return text.replace(this.#global, () => replacement);
  }

  /** `re.split` of a pattern without groups. */
  split(text: string): string[] {
    return text.split(this.#global);
  }
}

function findFrom(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

const CLASSES: Readonly<Record<string, string>> = { s: SPACES, d: "\\p{Nd}", w: "\\p{L}\\p{N}_" };
const NEGATED: Readonly<Record<string, string>> = { S: SPACES, D: "\\p{Nd}", W: "\\p{L}\\p{N}_" };

/** The source for the flag `u`. Covers the syntax that the log parsers use. */
export function translate(source: string, flags: Flags): string {
  let out = "";
  for (let at = 0; at < source.length; at++) {
    const char = source[at] ?? "";
    if (char === "\\") {
      at++;
      out += escaped(source[at] ?? "");
    } else if (char === "[") {
      const end = classEnd(source, at);
      out += characterClass(source.slice(at, end));
      at = end - 1;
    } else if (char === ".") out += flags.includes("S") ? "[^]" : "[^\\n]";
    else if (char === "^") out += flags.includes("M") ? "(?<![^\\n])" : "^";
    else if (char === "$") out += flags.includes("M") ? "(?![^\\n])" : "(?=\\n?$)";
    else out += char;
  }
  return out;
}

function escaped(letter: string): string {
  if (letter === "b") return "(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))";
  const inside = CLASSES[letter];
  if (inside !== undefined) return `[${inside}]`;
  const outside = NEGATED[letter];
  return outside === undefined ? `\\${letter}` : `[^${outside}]`;
}

function classEnd(source: string, start: number): number {
  let at = start + 1;
  while (at < source.length && source[at] !== "]") at += source[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** A class that has `\s` and its complement matches everything; one that excludes a complement is an intersection. */
function characterClass(text: string): string {
  if (text === "[\\s\\S]") return "[^]";
  if (text === "[^\\S\\r\\n]") return `(?![\\r\\n])[${SPACES}]`;
  return text.replace(/\\(.)/gu, (whole, letter: string) => {
    if (NEGATED[letter] !== undefined) throw new Error(`the class ${text} is not supported`);
    return CLASSES[letter] ?? whole;
  });
}
