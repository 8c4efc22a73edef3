/** A colour code, as a regular expression. */
export const COLOR = `${String.fromCharCode(27)}\\[[0-9;]*m`;
const ESCAPES = new RegExp(COLOR, "g");
const RESET = "\x1b[0m";

/** A text without its colour codes. */
export function visible(text: string): string {
  return text.replace(ESCAPES, "");
}

/** Cuts a line to so many visible characters. Colour codes count for nothing, and a cut line ends without a colour. */
export function fit(line: string, columns: number): string {
  if (visible(line).length <= columns) return line;
  let shown = "";
  let left = columns;
  let from = 0;
  for (const { 0: code, index } of line.matchAll(ESCAPES)) {
    shown += line.slice(from, Math.min(index, from + left)) + code;
    left -= Math.min(left, index - from);
    from = index + code.length;
  }
  return `${shown}${line.slice(from, from + left)}${shown === "" ? "" : RESET}`;
}
