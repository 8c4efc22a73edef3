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

/** The same for lines that contain one of these texts, which have no line ends. Others are passed over without being cut out. */
export function eachLineWith(text: string, needs: readonly string[], visit: (line: string) => void): void {
  const next = needs.map((need) => text.indexOf(need));
  for (;;) {
    let first = -1;
    for (const at of next) if (at >= 0 && (first < 0 || at < first)) first = at;
    if (first < 0) return;
    const start = first === 0 ? 0 : text.lastIndexOf("\n", first - 1) + 1;
    const newline = text.indexOf("\n", first);
    const end = newline < 0 ? text.length : newline;
    visit(text.slice(start, end));
    for (let i = 0; i < next.length; i++) {
      const at = next[i] as number;
      if (at >= 0 && at < end) next[i] = text.indexOf(needs[i] as string, end);
    }
  }
}
