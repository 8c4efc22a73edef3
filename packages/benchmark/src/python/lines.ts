import { isBlank } from "./text.ts";

/** Python has more line ends than JavaScript. */
const END = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029";
const LINE_END = new RegExp(`\\r\\n|[${END}]`);
const LINE = new RegExp(`[^${END}]*(?:\\r\\n|[${END}])|[^${END}]+`, "g");

/** `text.splitlines()` */
export function splitLines(text: string): string[] {
  const lines = text.split(LINE_END);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** `textwrap.indent(text, prefix)`: blank lines stay unchanged. */
export function indent(text: string, prefix: string): string {
  const lines = text.match(LINE) ?? [];
  return lines.map((line) => (isBlank(line) ? line : prefix + line)).join("");
}

/** How Python opens text files: `\r\n` and `\r` are read as `\n`. */
export function universalNewlines(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}
