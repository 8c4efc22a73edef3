interface Pattern {
  readonly isNegated: boolean;
  readonly matches: RegExp;
}

/**
 * Whether a path is ignored: the last pattern that matches it, or a folder above it, decides. As in the reference, `folder/*` means only
 * the files in the folder itself, and `/` means everything.
 */
export function gitignore(source: string): (path: string) => boolean {
  const patterns = source.split(/\r?\n/).flatMap((line) => parsePattern(line) ?? []);
  return (path) => patterns.findLast(({ matches }) => matches.test(path))?.isNegated === false;
}

export interface PatternLine {
  readonly isNegated: boolean;
  /** It matches folders only. */
  readonly isFolder: boolean;
  /** A slash at the start or in the middle ties it to the root. */
  readonly isAnchored: boolean;
  readonly parts: readonly string[];
}

/** Null for a comment and an empty line. `/` has one empty part. */
export function parseLine(line: string): PatternLine | null {
  let text = line.replace(/(?<!\\)(?: )+$/, "");
  if (text === "" || text.startsWith("#")) return null;
  const isNegated = text.startsWith("!");
  if (isNegated) text = text.slice(1);
  const isFolder = text.endsWith("/");
  const parts = text.replace(/\/$/, "").split("/");
  if (parts.length === 1 && parts[0] === "" && !isFolder) return null;
  const isAnchored = parts.length > 1;
  if (isAnchored && parts[0] === "") parts.shift();
  return { isNegated, isFolder, isAnchored, parts };
}

function parsePattern(line: string): Pattern | null {
  const parsed = parseLine(line);
  if (parsed === null) return null;
  const { isNegated, isFolder, isAnchored, parts } = parsed;
  if (parts.length === 1 && parts[0] === "") return { isNegated, matches: /^/ };
  const inner = parts.map((part, i) => segment(part, i === 0, i === parts.length - 1));
  const start = isAnchored || parts[0] === "**" ? "" : "(?:.*/)?";
  const end = isFolder ? "/.*" : parts.at(-1) === "**" || (isAnchored && parts.at(-1) === "*") ? "" : "(?:/.*)?";
  return { isNegated, matches: new RegExp(`^${start}${inner.join("")}${end}$`, "su") };
}

/** The expression of one part of a path, with the slash that follows it. */
function segment(part: string, isFirst: boolean, isLast: boolean): string {
  if (part === "**") return isLast ? (isFirst ? ".*" : ".+") : "(?:.*/)?";
  return globExpression(part, "[^/]") + (isLast ? "" : "/");
}

/** The expression of a name with wildcards; `any` is what `*` repeats. */
export function globExpression(glob: string, any: string): string {
  let out = "";
  const letters = [...glob];
  for (let i = 0; i < letters.length; i++) {
    const letter = letters[i] ?? "";
    if (letter === "\\" && i + 1 < letters.length) out += escaped(letters[++i] ?? "");
    else if (letter === "*") out += `${any}*`;
    else if (letter === "?") out += any;
    else if (letter === "[") {
      const end = classEnd(letters, i);
      if (end < 0) out += "\\[";
      else {
        out += classExpression(letters.slice(i + 1, end));
        i = end;
      }
    } else out += escaped(letter);
  }
  return out;
}

/** Where a class such as `[a-z]` ends; a `]` at its start belongs to it. */
function classEnd(letters: readonly string[], start: number): number {
  let at = start + 1;
  if (letters[at] === "!" || letters[at] === "^") at++;
  if (letters[at] === "]") at++;
  return letters.indexOf("]", at);
}

function classExpression(letters: readonly string[]): string {
  const isNegated = letters[0] === "!" || letters[0] === "^";
  const inner = (isNegated ? letters.slice(1) : letters).join("").replace(/[\\[\]&^]/g, "\\$&");
  return `[${isNegated ? "^" : ""}${inner}]`;
}

function escaped(letter: string): string {
  return letter.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
