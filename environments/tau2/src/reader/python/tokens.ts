import { ReaderError } from "../error.ts";
import { decodeNumber, decodeString } from "./literal.ts";

export type Token =
  | { kind: "name" | "operator"; text: string; line: number }
  | { kind: "number"; value: number; line: number }
  /** `isTemplate`: an f-string; its braces stand in `value` as in the source. */
  | { kind: "string"; value: string; isTemplate: boolean; line: number }
  | { kind: "newline" | "indent" | "dedent"; line: number };

const NAME = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*/uy;
const NUMBER = /(?:\d|\.\d)(?:[eE][+-](?=\d)|[\w.])*/y;
const STRING = /([rRbBfFuU]{0,2})("""|'''|"|')/y;
const OPERATOR = /\*\*=|\/\/=|>>=|<<=|\.\.\.|->|:=|==|!=|<=|>=|\+=|-=|\*=|\/=|%=|@=|&=|\|=|\^=|\*\*|\/\/|<<|>>|[-+*/%@&|^~<>()[\]{},:.;=]/y;
const BLANK = /[ \t\f]*(?:#[^\n]*)?(?=\n|$)/y;

/** The tokens of a Python source, with indentation as tokens; lines inside brackets are one. */
export function tokenize(source: string): Token[] {
  const text = source.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const tokens: Token[] = [];
  const indents = [0];
  const brackets: string[] = [];
  let at = 0;
  let line = 1;
  let isLineStart = true;

  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };

  while (at < text.length) {
    if (isLineStart) {
      const blank = match(BLANK);
      if (blank) {
        at += blank[0].length + 1;
        line++;
        continue;
      }
      at = indent(text, at, line, indents, tokens);
      isLineStart = false;
    }
    const character = text[at] as string;
    if (character === "\n") {
      if (brackets.length === 0) {
        tokens.push({ kind: "newline", line });
        isLineStart = true;
      }
      at++;
      line++;
    } else if (character === " " || character === "\t" || character === "\f") at++;
    else if (character === "#") at = endOfLine(text, at);
    else if (character === "\\" && text[at + 1] === "\n") {
      at += 2;
      line++;
    } else {
      const string = match(STRING);
      if (string) {
        const [, prefix = "", quote = ""] = string;
        const isTemplate = /f/i.test(prefix);
        const start = at + string[0].length;
        const end = endOfString(text, start, quote, isTemplate, line);
        const inside = text.slice(start, end);
        tokens.push({ kind: "string", value: /[rb]/i.test(prefix) ? inside : decodeString(inside, line), isTemplate, line });
        line += inside.split("\n").length - 1;
        at = end + quote.length;
        continue;
      }
      const number = match(NUMBER);
      const word = number ?? match(NAME);
      const operator = word ?? match(OPERATOR);
      if (!operator) throw new ReaderError(`the character ${JSON.stringify(character)} begins nothing that is read`, line);
      if (number) tokens.push({ kind: "number", value: decodeNumber(number[0], line), line });
      else if (word) tokens.push({ kind: "name", text: word[0], line });
      else {
        balance(brackets, operator[0], line);
        tokens.push({ kind: "operator", text: operator[0], line });
      }
      at += operator[0].length;
    }
  }
  if (brackets.length > 0) throw new ReaderError(`the bracket "${brackets.at(-1)}" is never closed`, line);
  if (!isLineStart) tokens.push({ kind: "newline", line });
  for (const depth of indents) if (depth > 0) tokens.push({ kind: "dedent", line });
  return tokens;
}

function indent(text: string, start: number, line: number, indents: number[], tokens: Token[]): number {
  let at = start;
  let width = 0;
  for (; text[at] === " " || text[at] === "\t" || text[at] === "\f"; at++) {
    width = text[at] === "\t" ? (Math.floor(width / 8) + 1) * 8 : width + 1;
  }
  if (width > (indents.at(-1) as number)) {
    indents.push(width);
    tokens.push({ kind: "indent", line });
  }
  while (width < (indents.at(-1) as number)) {
    indents.pop();
    tokens.push({ kind: "dedent", line });
  }
  if (width !== indents.at(-1)) throw new ReaderError("this line's indentation matches no line above it", line);
  return at;
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

/** Where the closing quote stands. Between the braces of an f-string, quoted text may hold the quote itself. */
function endOfString(text: string, start: number, quote: string, isTemplate: boolean, line: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at] as string;
    if (character === "\\") at++;
    else if (character === "\n" && quote.length === 1) break;
    else if (isTemplate && character === "{") {
      if (depth === 0 && text[at + 1] === "{") at++;
      else depth++;
    } else if (isTemplate && character === "}") depth = Math.max(0, depth - 1);
    else if (depth > 0 && (character === '"' || character === "'") && !(quote.length === 3 && text.startsWith(quote, at))) {
      const close = text.indexOf(character, at + 1);
      const brace = text.indexOf("}", at + 1);
      if (close > 0 && brace > close && !text.slice(at, close).includes("\n")) at = close;
      else if (character === quote) return at;
    } else if (text.startsWith(quote, at)) return at;
  }
  throw new ReaderError("a string is never closed", line);
}

const CLOSES: Record<string, string> = { ")": "(", "]": "[", "}": "{" };

function balance(brackets: string[], operator: string, line: number): void {
  if (operator === "(" || operator === "[" || operator === "{") brackets.push(operator);
  const opening = CLOSES[operator];
  if (opening !== undefined && brackets.pop() !== opening) throw new ReaderError(`the bracket "${operator}" closes nothing`, line);
}
