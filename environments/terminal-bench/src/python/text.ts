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

// biome-ignore lint/suspicious/noControlCharactersInRegex: Python ends lines at them too.
const LINE_END = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/;

/** `str.splitlines()`. */
export function splitLines(text: string): string[] {
  const lines = text.split(LINE_END);
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
    if (one.done || other.done)
      return Number(other.done === true ? one.done !== true : 0) - Number(one.done === true ? other.done !== true : 0);
    const difference = (one.value.codePointAt(0) ?? 0) - (other.value.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
}

/** What Python counts as digits beside the decimal ones: superscripts, subscripts, digits in circles and the like. */
const OTHER_DIGITS =
  "\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}";
const DIGITS = new RegExp(`^[\\p{Nd}${OTHER_DIGITS}]+$`, "u");

/** `str.isdigit()`. */
export function isDigits(text: string): boolean {
  return DIGITS.test(text);
}
