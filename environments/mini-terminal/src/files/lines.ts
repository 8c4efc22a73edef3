/** Some lines of a text. */
export interface LineRange {
  readonly content: string;
  /** The numbers of the first and the last line, counted from 1; 0 if there are none. */
  readonly first_line: number;
  readonly last_line: number;
  readonly total_lines: number;
}

/** Lines from `first` on, at most `count` and at most so many characters, but at least one. A line keeps its line break. */
export function linesOf(text: string, first: number, count: number, maxCharacters: number): LineRange {
  const lines = splitLines(text);
  if (lines.length === 0 && first === 1) return { content: "", first_line: 0, last_line: 0, total_lines: 0 };
  if (first > lines.length) throw new Error(`line ${first} does not exist; the file has ${lines.length} lines`);
  const chosen: string[] = [];
  let length = 0;
  for (const line of lines.slice(first - 1, first - 1 + count)) {
    if (chosen.length > 0 && length + line.length > maxCharacters) break;
    chosen.push(line);
    length += line.length;
  }
  return { content: chosen.join(""), first_line: first, last_line: first + chosen.length - 1, total_lines: lines.length };
}

/** A line break belongs to the line that it ends. */
function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
