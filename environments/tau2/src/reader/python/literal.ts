import { ReaderError } from "../error.ts";

const SIMPLE: Record<string, string> = {
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const ESCAPE = /\\(?:([\\'"\nabfnrtv])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([xuUN]))/g;

/** The text that the inside of a string literal stands for. Escapes that Python does not know stay as they are, as in Python. */
export function decodeString(inside: string, line?: number): string {
  return inside.replace(ESCAPE, (whole, simple?: string, octal?: string, x?: string, u?: string, long?: string) => {
    if (simple !== undefined) return SIMPLE[simple] ?? whole;
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
    const hex = x ?? u ?? long;
    if (hex === undefined) throw new ReaderError(`the escape "${whole}" is incomplete or names a character, which is not read`, line);
    const point = Number.parseInt(hex, 16);
    if (point > 0x10ffff) throw new ReaderError(`the escape "${whole}" is no character`, line);
    return String.fromCodePoint(point);
  });
}

const NUMBER =
  /^(?:0[xX][\da-fA-F](?:_?[\da-fA-F])*|0[oO][0-7](?:_?[0-7])*|0[bB][01](?:_?[01])*|(?:\d(?:_?\d)*\.?(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?)$/;

export function decodeNumber(text: string, line?: number): number {
  if (!NUMBER.test(text)) throw new ReaderError(`"${text}" is no number that is read`, line);
  return Number(text.replaceAll("_", ""));
}
