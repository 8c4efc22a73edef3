import { PyFloat, PyOpaque, type PyValue, toInt } from "../values.ts";
import { NotPython } from "./not-python.ts";
import { readString, STRING_START } from "./strings.ts";

export type Token =
  | { readonly kind: "name"; readonly text: string }
  | { readonly kind: "keyword"; readonly text: string }
  | { readonly kind: "operator"; readonly text: string }
  | { readonly kind: "value"; readonly text: string; readonly value: PyValue }
  | { readonly kind: "string"; readonly text: string; readonly prefix: string; readonly body: string }
  | { readonly kind: "end"; readonly text: "" };

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import in is " +
    "lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

/** Words that may touch a number in front of them: `1if x else 2`. */
const AFTER_NUMBER = /^(?:and|else|for|if|in|is|not|or)(?![\p{ID_Continue}])/u;

const BLANK = /[ \t\f\r]+/y;
const NAME = /[\p{ID_Start}_][\p{ID_Continue}]*/uy;
const OPERATOR = /\.\.\.|\*\*=?|\/\/=?|<<=?|>>=?|:=|->|!=|[-+*/%&|^@=<>]=|[-+*/%&|^~@=<>()[\]{},:.;]/y;
const FLOAT =
  /(?:\d(?:_?\d)*)?\.\d(?:_?\d)*(?:[eE][+-]?\d(?:_?\d)*)?|\d(?:_?\d)*\.(?:[eE][+-]?\d(?:_?\d)*)?|\d(?:_?\d)*[eE][+-]?\d(?:_?\d)*/y;
const INT = /0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|[1-9](?:_?\d)*|0(?:_?0)*/y;
const WHOLE = /\d(?:_?\d)*/y;

export function tokenize(source: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const blank = match(BLANK, source, at);
    if (blank !== null) {
      at += blank.length;
      continue;
    }
    const [token, length] = tokenAt(source, at);
    tokens.push(token);
    at += length;
  }
  tokens.push({ kind: "end", text: "" });
  return tokens;
}

function tokenAt(source: string, at: number): [Token, number] {
  const quoted = match(STRING_START, source, at);
  if (quoted !== null) {
    const { length, prefix, body } = readString(source, at, quoted);
    return [{ kind: "string", text: source.slice(at, at + length), prefix, body }, length];
  }
  const name = match(NAME, source, at);
  if (name !== null) {
    const text = name.normalize("NFKC");
    return [{ kind: KEYWORDS.has(text) ? "keyword" : "name", text }, name.length];
  }
  const number = numberAt(source, at);
  if (number !== null) return number;
  const operator = match(OPERATOR, source, at);
  if (operator !== null) return [{ kind: "operator", text: operator }, operator.length];
  throw new NotPython(`'${source[at]}' means nothing in Python`);
}

function numberAt(source: string, at: number): [Token, number] | null {
  const float = match(FLOAT, source, at);
  const text = float ?? match(INT, source, at);
  if (text === null) return null;
  const whole = match(WHOLE, source, at) ?? "";
  // `0123` is an error, but `0123j` is not.
  const digits = float ?? (whole.length > text.length && /^[jJ]/.test(source.slice(at + whole.length)) ? whole : text);
  if (float === null && whole.length > digits.length) throw new NotPython("an int has leading zeros");
  const isImaginary = /^[jJ]/.test(source.slice(at + digits.length));
  const length = digits.length + (isImaginary ? 1 : 0);
  const rest = source.slice(at + length);
  if (/^[\p{ID_Continue}]/u.test(rest) && !AFTER_NUMBER.test(rest)) throw new NotPython("a number runs into a name");
  const plain = digits.replaceAll("_", "");
  if (isImaginary) return [{ kind: "value", text, value: new PyOpaque("complex", `${plain}j`) }, length];
  return [{ kind: "value", text, value: float === null ? toInt(BigInt(plain)) : new PyFloat(Number(plain)) }, length];
}

export function match(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}
