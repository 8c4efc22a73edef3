/** Python's whitespace, as the inside of a character class. JavaScript's `\s` lacks U+001C-001F and U+0085 and has U+FEFF. */
export const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

/** What `\w` matches, as the inside of a character class; needs the flag `u`. */
export const WORD = "\\p{L}\\p{N}_";

export function isSpace(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f);
  if (code < 0x1680) return code === 0x85 || code === 0xa0;
  return (
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

/** `text.lstrip()` */
export function lstrip(text: string): string {
  return text.slice(indentOf(text));
}

/** `text.rstrip()` */
export function rstrip(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end--;
  return end === text.length ? text : text.slice(0, end);
}

/** `text.strip()` */
export function strip(text: string): string {
  return rstrip(lstrip(text));
}

export function isBlank(text: string): boolean {
  return indentOf(text) === text.length;
}

/** Where the whitespace that starts at `from` ends: for a whole text, the number of its leading whitespace characters, which are single UTF-16 units. */
export function indentOf(text: string, from = 0): number {
  let start = from;
  while (start < text.length && isSpace(text.charCodeAt(start))) start++;
  return start;
}

/** `text.split()`, up to a number of words if one is given. */
export function words(text: string, limit = Number.POSITIVE_INFINITY): string[] {
  const found: string[] = [];
  let at = 0;
  while (found.length < limit) {
    while (at < text.length && isSpace(text.charCodeAt(at))) at++;
    if (at === text.length) break;
    const start = at;
    while (at < text.length && !isSpace(text.charCodeAt(at))) at++;
    found.push(text.slice(start, at));
  }
  return found;
}

/** `text.split(maxsplit=1)`: the first word, and what follows it without the spaces in between. */
export function firstWord(text: string): { readonly word: string; readonly rest: string | null } | null {
  const [word] = words(text, 1);
  if (word === undefined) return null;
  const rest = lstrip(lstrip(text).slice(word.length));
  return { word, rest: rest === "" ? null : rest };
}

/** Each run of whitespace as one space, without those at the ends. */
export function collapse(text: string): string {
  return words(text).join(" ");
}

/** The text before the first separator; the whole text if there is none. */
export function before(text: string, separator: string): string {
  const at = text.indexOf(separator);
  return at < 0 ? text : text.slice(0, at);
}

/** The text after the first separator; the whole text if there is none. */
export function after(text: string, separator: string): string {
  const at = text.indexOf(separator);
  return at < 0 ? text : text.slice(at + separator.length);
}

/** The text before the last separator; the whole text if there is none. */
export function beforeLast(text: string, separator: string): string {
  const at = text.lastIndexOf(separator);
  return at < 0 ? text : text.slice(0, at);
}

/** The text after the last separator; the whole text if there is none. */
export function afterLast(text: string, separator: string): string {
  const at = text.lastIndexOf(separator);
  return at < 0 ? text : text.slice(at + separator.length);
}

/** The pieces after the first separator. */
export function cutTail(text: string, separator: string): string[] {
  return text.split(separator).slice(1);
}

/** Compares code points, as Python sorts strings; `<` compares UTF-16 units. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Moves surrogates behind U+E000-FFFF: they stand for larger code points. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}
