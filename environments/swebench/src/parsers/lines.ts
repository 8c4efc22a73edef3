/** Calls `visit` with each line; only `\n` ends a line. */
export function eachLine(text: string, visit: (line: string) => void): void {
  let start = 0;
  for (;;) {
    const end = text.indexOf("\n", start);
    if (end < 0) break;
    visit(text.slice(start, end));
    start = end + 1;
  }
  visit(text.slice(start));
}
