import { ReadLimitExceeded } from "./bounded-read.ts";

/** What a reader accepts of somebody else's JSON, beside its size. */
export interface JsonLimits {
  readonly maxDepth: number;
  /** Members of objects and elements of arrays, in total. */
  readonly maxValues: number;
}

/**
 * The limits of ordinary messages. Code that visits a value recursively (`JSON.stringify`, schemas, comparisons) overflows the stack at a
 * few thousand levels, and each value costs a hundred bytes of memory and a problem's line in an error's text.
 */
export const jsonLimits: JsonLimits = { maxDepth: 200, maxValues: 2_000_000 };

/** Parses JSON that somebody else wrote. Throws ReadLimitExceeded, or the SyntaxError of `JSON.parse`. */
export function parseBoundedJson(text: string, limits: JsonLimits = jsonLimits): unknown {
  // A level or a value takes at least one character, so a short text needs no scan.
  if (text.length > Math.min(limits.maxDepth, limits.maxValues)) assertWithin(text, limits);
  return JSON.parse(text);
}

/** Counts brackets and commas outside of strings; `JSON.parse` finds what is malformed. */
function assertWithin(text: string, { maxDepth, maxValues }: JsonLimits): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++depth > maxDepth) throw new ReadLimitExceeded("depth", maxDepth);
        if (++values > maxValues) throw new ReadLimitExceeded("values", maxValues);
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--;
        break;
      case COMMA:
        if (++values > maxValues) throw new ReadLimitExceeded("values", maxValues);
        break;
    }
  }
}

/** The index of the quote that ends the string that begins at `start`; the text's end if there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
