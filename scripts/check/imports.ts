import { type Token, tokenize } from "./tokens.ts";

/** One import of a module in a file. */
export interface Import {
  readonly specifier: string;
  /** True for `import("…")`, which runs after loading. */
  readonly isDynamic: boolean;
  readonly at: number;
}

/** All imports of a source file: static imports, `export … from` and `import("…")`. */
export function findImports(source: string): Import[] {
  const tokens = tokenize(source);
  const found: Import[] = [];
  for (const [index, token] of tokens.entries()) {
    // `a.import` and `{ import: 1 }` are property names.
    if (token.kind !== "word" || isMark(tokens[index - 1], ".") || isMark(tokens[index + 1], ":")) continue;
    if (token.text !== "import" && token.text !== "export") continue;
    const read = token.text === "import" ? (dynamicImport(tokens, index) ?? statement(tokens, index)) : statement(tokens, index);
    if (read !== null) found.push({ ...read, at: token.at });
  }
  return found;
}

type Read = Omit<Import, "at"> | null;

function dynamicImport(tokens: readonly Token[], index: number): Read {
  const [open, name] = tokens.slice(index + 1, index + 3);
  if (!isMark(open, "(") || name?.kind !== "string") return null;
  return { specifier: name.text, isDynamic: true };
}

/** What follows `import` or `export`: a string, or names up to `from "…"`. Anything else is not an import. */
function statement(tokens: readonly Token[], index: number): Read {
  const first = tokens[index + 1];
  if (first?.kind === "string") {
    return tokens[index]?.text === "import" ? { specifier: first.text, isDynamic: false } : null;
  }
  let isInside = false;
  for (let at = index + 1; at < tokens.length; at += 1) {
    const token = tokens[at] as Token;
    const next = tokens[at + 1];
    if (!isInside && isWord(token, "from") && next?.kind === "string") {
      return { specifier: next.text, isDynamic: false };
    }
    if (isMark(token, "{") && !isInside) isInside = true;
    else if (isMark(token, "}") && isInside) isInside = false;
    else if (!isPartOfNames(token, isInside)) return null;
  }
  return null;
}

function isPartOfNames(token: Token, isInside: boolean): boolean {
  if (token.kind === "value") return false;
  if (token.kind === "mark") return token.text === "," || token.text === "*";
  // `export { a as "any text" } from` is a name too. A word outside braces that declares something ends the search.
  if (token.kind === "string") return isInside;
  return isInside || !DECLARES.has(token.text);
}

const DECLARES = new Set(["const", "let", "var", "function", "class", "interface", "enum", "async", "abstract", "declare", "namespace"]);

function isMark(token: Token | undefined, text: string): boolean {
  return token?.kind === "mark" && token.text === text;
}

function isWord(token: Token | undefined, text: string): boolean {
  return token?.kind === "word" && token.text === text;
}
