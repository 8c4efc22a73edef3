/** A token of TypeScript, only as detailed as finding imports and calls requires. */
export interface Token {
  readonly kind: "word" | "string" | "mark" | "value";
  /** A word as written, a string's contents, one character of punctuation, or nothing for a number, a regular expression or a template. */
  readonly text: string;
  readonly at: number;
}

const SKIP = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const WORD = /[\p{ID_Start}$_#][\p{ID_Continue}$\u200c\u200d]*/uy;
const NUMBER = /\d[\w.]*/y;
const STRING = /"((?:[^"\\\n]|\\[\s\S])*)"|'((?:[^'\\\n]|\\[\s\S])*)'/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;

/** Words after which a `/` begins a regular expression. */
const BEFORE_REGEX = new Set(["return", "typeof", "case", "do", "else", "in", "of", "void", "delete", "throw", "new", "await", "yield"]);

/** Splits source text; comments and the text of templates with `${}` are left out. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  scan(source, 0, tokens);
  return tokens;
}

/** Reads until the end, or until the `}` that closes a template's `${`; returns the position. */
function scan(source: string, from: number, tokens: Token[]): number {
  let at = from;
  let depth = 0;
  while (at < source.length) {
    const skipped = match(SKIP, source, at);
    if (skipped !== null) {
      at += skipped[0].length;
      continue;
    }
    const char = source[at] as string;
    const word = match(WORD, source, at);
    const string = match(STRING, source, at);
    const number = match(NUMBER, source, at);
    const regex = char === "/" && mayBeRegex(tokens.at(-1)) ? match(REGEX, source, at) : null;
    if (char === "`") {
      at = template(source, at, tokens);
    } else if (word !== null) {
      tokens.push({ kind: "word", text: word[0], at });
      at += word[0].length;
    } else if (string !== null) {
      tokens.push({ kind: "string", text: string[1] ?? string[2] ?? "", at });
      at += string[0].length;
    } else if (number !== null || regex !== null) {
      tokens.push({ kind: "value", text: "", at });
      at += (number ?? regex)?.[0].length ?? 1;
    } else {
      if (char === "{") depth += 1;
      if (char === "}" && depth-- === 0) return at;
      tokens.push({ kind: "mark", text: char, at });
      at += 1;
    }
  }
  return at;
}

/** From the opening backquote to after the closing one; the text in `${}` is code. */
function template(source: string, from: number, tokens: Token[]): number {
  let at = from + 1;
  let isPlain = true;
  while (at < source.length && source[at] !== "`") {
    if (source.startsWith("${", at)) {
      isPlain = false;
      at = scan(source, at + 2, tokens) + 1;
    } else {
      at += source[at] === "\\" ? 2 : 1;
    }
  }
  const text = source.slice(from + 1, at);
  tokens.push(isPlain ? { kind: "string", text, at: from } : { kind: "value", text: "", at: from });
  return at + 1;
}

function mayBeRegex(before: Token | undefined): boolean {
  if (before === undefined) return true;
  if (before.kind === "word") return BEFORE_REGEX.has(before.text);
  return before.kind === "mark" && before.text !== ")" && before.text !== "]" && before.text !== "}";
}

function match(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}
