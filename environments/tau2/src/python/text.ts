const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LEADING = new RegExp(`^[${SPACE}]+`);
const TRAILING = new RegExp(`[${SPACE}]+$`);
const NON_SPACE = new RegExp(`[^${SPACE}]`);

/** One line with its line end; Python has more line ends than JavaScript. */
const END = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029";
const LINE = new RegExp(`[^${END}]*(?:\\r\\n|[${END}])|[^${END}]+`, "g");

/** For regular expressions that must mean `\s` and `\w` as Python does; needs the `u` flag. */
export const SPACE_CLASS = `[${SPACE}]`;
export const WORD_CLASS = "[\\p{L}\\p{N}_]";

/** `text.strip()`; its set of whitespace differs from that of `trim`. */
export function strip(text: string): string {
  return text.replace(LEADING, "").replace(TRAILING, "");
}

export function isBlank(text: string): boolean {
  return !NON_SPACE.test(text);
}

/** `text.splitlines(keepends=True)`. */
export function splitLines(text: string): string[] {
  return text.match(LINE) ?? [];
}

/** `textwrap.indent(text, prefix)`: blank lines stay unchanged. */
export function indent(text: string, prefix: string): string {
  return splitLines(text)
    .map((line) => (isBlank(line) ? line : prefix + line))
    .join("");
}

/** By code point, as Python sorts strings; `<` would sort by UTF-16 unit. */
export function compareText(a: string, b: string): number {
  if (!/[\ud800-\uffff]/.test(a) || !/[\ud800-\uffff]/.test(b)) return a < b ? -1 : a > b ? 1 : 0;
  const left = [...a];
  const right = [...b];
  for (let i = 0; i < left.length && i < right.length; i++) {
    const difference = (left[i]?.codePointAt(0) ?? 0) - (right[i]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
