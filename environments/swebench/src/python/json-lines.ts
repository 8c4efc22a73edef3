import { universalNewlines } from "@aenv/benchmark";

/** The lines of a JSONL file. An empty line in the middle is kept, and is an error for its reader. */
export function jsonLines(text: string): string[] {
  const lines = universalNewlines(text).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
