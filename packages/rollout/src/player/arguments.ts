import { parseWithNotation } from "@aenv/contract";

/** Numbers that JavaScript would write in another way: `2.0`, `1e3`, `-0`, and integers with more digits than it keeps. */
const SPECIAL_NUMBER = /[.eE][+-]?\d|\d{16}|-0/;

/**
 * The arguments of a call, with numbers that are sent in the notation in which the model wrote them: an environment may tell `2.0` from
 * `2`. `value` is the parsed text.
 */
export function asWritten(text: string, value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return withNotation(text) ?? value;
}

/** The parsed text, whose numbers are written again in their notation; null if JavaScript writes all of them so anyway. */
export function withNotation(text: string): Readonly<Record<string, unknown>> | null {
  return SPECIAL_NUMBER.test(text) ? (parseWithNotation(text) as Record<string, unknown>) : null;
}
