import { globExpression, type PatternLine, parseLine } from "./gitignore.ts";

interface Pattern {
  readonly isNegated: boolean;
  readonly matches: RegExp;
}

/**
 * Whether the rules of a `.harborignore` leave out a path; null if they say nothing of it. The path of a folder ends with a slash. As in
 * the reference, the last pattern that matches decides, but one that matches only a folder's slash comes after all others.
 */
export function ignoreSpec(source: string): (path: string) => boolean | null {
  const patterns = source.split(/\r?\n/).flatMap((line) => {
    const parsed = parseLine(line);
    const matches = parsed && expressionOf(parsed);
    return parsed === null || matches === null ? [] : [{ isNegated: parsed.isNegated, matches }];
  });
  patterns.reverse();
  return (path) => {
    let ofFolder: Pattern | null = null;
    for (const pattern of patterns) {
      const match = pattern.matches.exec(path);
      if (match === null) continue;
      if (match[1] === undefined) return !pattern.isNegated;
      ofFolder ??= pattern;
    }
    return ofFolder === null ? null : !ofFolder.isNegated;
  };
}

/** Its group is the slash of a folder. */
function expressionOf({ isFolder, isAnchored, parts: given }: PatternLine): RegExp | null {
  if (given.length === 1 && given[0] === "") return null;
  const isEverything = given.every((part) => part === "**") || (!isAnchored && given.length === 1 && given[0] === "*");
  if (isEverything) return isFolder ? /(\/)/ : /./su;
  const isFree = !isAnchored || given[0] === "**";
  const isBelow = given.at(-1) === "**";
  const parts = given.slice(given[0] === "**" ? 1 : 0, isBelow ? -1 : undefined);
  const inner = parts.map((part, i) => (part === "**" ? "(?:/.+)?" : `${i === 0 ? "" : "/"}${nameExpression(part)}`)).join("");
  const end = isFolder ? "(/)" : isBelow ? "/" : "(?:(/)|$)";
  return new RegExp(`^${isFree ? "(?:.+/)?" : ""}${inner}${end}`, "su");
}

function nameExpression(part: string): string {
  return part === "*" ? "[^/]+" : globExpression(part, "[^/]");
}
