/** What Python's `str.isspace` is true for. JavaScript's `\s` differs: it has the byte order mark and lacks U+001C to U+001F and U+0085. */
const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

/** A character class for regular expressions, without its brackets. */
export const SPACE_CLASS = SPACES;

const AROUND = new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, "g");
const FIRST_WORD = new RegExp(`^[${SPACES}]*([^${SPACES}]+)(?:[${SPACES}]+([\\s\\S]*))?$`);

/** `str.strip()`. */
export function strip(text: string): string {
  return text.replace(AROUND, "");
}

/** `str.split(maxsplit=1)`: the first word, and what follows it without the spaces in between. */
export function firstWord(text: string): { readonly word: string; readonly rest: string | null } | null {
  const match = FIRST_WORD.exec(text);
  if (match?.[1] === undefined) return null;
  return { word: match[1], rest: match[2] === undefined || match[2] === "" ? null : match[2] };
}

/** `str.splitlines()`. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The text as Python reads a text file: every line ends with LF. */
export function universalNewlines(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** The order of Python's strings: by code point, not by UTF-16 unit. */
export function compareText(a: string, b: string): number {
  const left = a[Symbol.iterator]();
  const right = b[Symbol.iterator]();
  for (;;) {
    const one = left.next();
    const other = right.next();
    if (one.done || other.done) return Number(other.done === true ? one.done !== true : 0) - Number(one.done === true ? other.done !== true : 0);
    const difference = (one.value.codePointAt(0) ?? 0) - (other.value.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
}
