import type { Pattern } from "../../python/pattern.ts";

const WORD = "passing";

/**
 * Where the first match of a pattern is that ends with `passing`, and that has at most one newline before its number. Null without one.
 * Searching the word first is much faster than searching a long log with the pattern.
 */
export function findSummary(log: string, pattern: Pattern): number | null {
  for (let at = log.indexOf(WORD); at >= 0; at = log.indexOf(WORD, at + 1)) {
    const start = Math.max(0, log.lastIndexOf("\n", at - 2));
    const found = pattern.search(log.slice(start, at + WORD.length));
    if (found !== null) return start + found.index;
  }
  return null;
}
