import { type Token, tokenize } from "./tokens.ts";

/** A read in a source file that has no visible limit. */
export interface UnboundedRead {
  readonly at: number;
  /** What is wrong with it, and what to call instead. */
  readonly message: string;
}

/**
 * All reads of a source file that may be endless, by their form: types are not known here. A read through the helper of @aenv/contract has none
 * of these forms.
 */
export function findUnboundedReads(source: string): UnboundedRead[] {
  const tokens = tokenize(source);
  return tokens.flatMap((token, index) =>
    rules.filter(({ finds }) => finds(tokens, index)).map(({ name, instead }) => ({ at: token.at, message: `${name}; ${instead}` })),
  );
}

interface Rule {
  readonly name: string;
  readonly instead: string;
  /** Whether the form begins at this token. */
  finds(tokens: readonly Token[], index: number): boolean;
}

const BODY = "use `readBoundedText`, `readBoundedBytes` or `boundedChunks` of @aenv/contract, within a limit of bytes";

const rules: readonly Rule[] = [
  {
    name: "reads a whole body without a limit",
    instead: BODY,
    finds: (tokens, index) =>
      isWord(tokens[index], "text", "json", "arrayBuffer", "bytes", "blob", "formData") &&
      isMark(tokens[index - 1], ".") &&
      isMark(tokens[index + 1], "(") &&
      isMark(tokens[index + 2], ")"),
  },
  {
    name: "reads a whole stream without a limit",
    instead: BODY,
    finds: (tokens, index) => tokens[index]?.kind === "string" && /^(?:node:)?stream\/consumers$/.test(tokens[index].text),
  },
  {
    name: "collects a stream without a limit",
    instead: BODY,
    finds: (tokens, index) => collectsLoop(tokens, index) || isCall(tokens, index, "Array", "fromAsync"),
  },
  {
    name: "receives chunks in a listener, which has no limit",
    instead: `iterate over the stream instead: ${BODY}`,
    finds: (tokens, index) =>
      isWord(tokens[index], "on", "addListener", "prependListener") &&
      isMark(tokens[index - 1], ".") &&
      isMark(tokens[index + 1], "(") &&
      isString(tokens[index + 2], "data", "readable") &&
      // `() => {}` drops what arrives.
      !(isMark(tokens[index + 4], "(") && isMark(tokens[index + 5], ")")),
  },
  {
    name: "reads a web stream without a limit",
    instead: `iterate over the stream instead: ${BODY}`,
    finds: (tokens, index) => isWord(tokens[index], "getReader") && isMark(tokens[index - 1], ".") && isMark(tokens[index + 1], "("),
  },
  {
    name: "turns off the limit of a read",
    instead: "state a number of bytes",
    finds: (tokens, index) =>
      isWord(tokens[index], "maxBytes", "maxBuffer", "maxPayload", "maxOutputLength") &&
      isMark(tokens[index + 1], ":") &&
      valueAt(tokens, index + 2).some((token) => isWord(token, "Infinity", "POSITIVE_INFINITY", "MAX_SAFE_INTEGER", "MAX_VALUE")),
  },
  {
    name: "parses JSON of any depth and any number of values",
    instead: "use `parseBoundedJson` of @aenv/contract",
    finds: (tokens, index) => isCall(tokens, index, "JSON", "parse") && !isOwnJson(tokens, index + 4),
  },
  {
    name: "accepts WebSocket messages of any size",
    instead: "pass `maxPayload`",
    finds: (tokens, index) =>
      isWord(tokens[index], "WebSocketServer", "WebSocket") &&
      isWord(tokens[index - 1], "new") &&
      isMark(tokens[index + 1], "(") &&
      !argumentsAt(tokens, index + 1).some((token) => isWord(token, "maxPayload")),
  },
  {
    name: "unpacks compressed bytes to any size",
    instead: "pass `maxOutputLength`, or read the stream of the unpacked bytes through `boundedChunks` of @aenv/contract",
    finds: (tokens, index) =>
      tokens[index]?.kind === "word" &&
      UNPACKS.test(tokens[index].text) &&
      isMark(tokens[index + 1], "(") &&
      tokens.some((one) => isString(one, "node:zlib", "zlib")) &&
      // A function of ours may have such a name.
      !tokens.some((one, at) => isWord(one, "function") && tokens[at + 1]?.text === tokens[index]?.text) &&
      !argumentsAt(tokens, index + 1).some((token) => isWord(token, "maxOutputLength")),
  },
  {
    name: "reads lines of any length",
    instead: "split the chunks of `boundedChunks` of @aenv/contract, and limit the length of a line",
    finds: (tokens, index) => tokens[index]?.kind === "string" && /^(?:node:)?readline(?:\/promises)?$/.test(tokens[index].text),
  },
  {
    name: "reads a delay that somebody else asks for",
    instead: "use `parseRetryAfter` of @aenv/contract, or `clampDelayMs` before `setTimeout`: a longer delay than 2^31 ms is over at once",
    finds: (tokens, index) =>
      isString(tokens[index], "retry-after", "Retry-After", "retry-after-ms") &&
      isLookup(tokens, index) &&
      !isWithin(tokens, index, CLAMPS),
  },
];

/** The functions of `node:zlib` that unpack. */
const UNPACKS =
  /^(?:(?:gunzip|inflate|inflateRaw|unzip|brotliDecompress|zstdDecompress)(?:Sync)?|create(?:Gunzip|Inflate|InflateRaw|Unzip|BrotliDecompress|ZstdDecompress))$/;

/** Functions that return a delay within limits. */
const CLAMPS = ["parseRetryAfter", "retryAfterOf", "clampDelayMs", "refusal"];

/** `for await (const chunk of source)` whose statement pushes the chunk or appends it to a string. */
function collectsLoop(tokens: readonly Token[], index: number): boolean {
  if (!isWord(tokens[index], "for") || !isWord(tokens[index + 1], "await") || !isMark(tokens[index + 2], "(")) return false;
  const [declares, name, of] = tokens.slice(index + 3, index + 6);
  if (!isWord(declares, "const", "let") || name?.kind !== "word" || !isWord(of, "of")) return false;
  if (isWord(tokens[index + 6], "boundedChunks")) return false;
  const end = closing(tokens, index + 2);
  const body = statementAt(tokens, end + 1);
  return body.some((token, at) => {
    const isPushed = isWord(token, "push", "unshift") && isMark(body[at - 1], ".") && isMark(body[at + 1], "(");
    if (isPushed) return argumentsAt(body, at + 1).some((one) => isWord(one, name.text));
    const isAppended = isMark(token, "+") && isMark(body[at + 1], "=");
    return isAppended && valueAt(body, at + 2).some((one, place, all) => isWord(one, name.text) && !isMark(all[place + 1], "."));
  });
}

/** JSON of this process, or of a file on this machine, which has a size when it is read. */
function isOwnJson(tokens: readonly Token[], at: number): boolean {
  const first = isWord(tokens[at], "await") ? at + 1 : at;
  return isWord(tokens[first], "readFileSync", "readFile") || isCall(tokens, first, "JSON", "stringify");
}

/** `headers["retry-after"]` or `headers.get("retry-after")`; not a header that is sent. */
function isLookup(tokens: readonly Token[], index: number): boolean {
  const [before, first, after] = [tokens[index - 2], tokens[index - 1], tokens[index + 1]];
  if (isMark(first, "[") && isMark(after, "]")) return before?.kind === "word" || isMark(before, ")");
  return isMark(first, "(") && isMark(after, ")") && isWord(before, "get", "header");
}

/** Whether the statement before this token calls one of the functions. */
function isWithin(tokens: readonly Token[], index: number, names: readonly string[]): boolean {
  for (let at = index; at >= 0 && !isMark(tokens[at], ";"); at--)
    if (isWord(tokens[at], ...names) && isMark(tokens[at + 1], "(")) return true;
  return false;
}

function isCall(tokens: readonly Token[], index: number, object: string, name: string): boolean {
  const [first, dot, second, open] = tokens.slice(index, index + 4);
  return isWord(first, object) && isMark(dot, ".") && isWord(second, name) && isMark(open, "(");
}

/** The tokens of a block, or of a statement that ends with `;`. */
function statementAt(tokens: readonly Token[], start: number): readonly Token[] {
  if (isMark(tokens[start], "{")) return tokens.slice(start, closing(tokens, start) + 1);
  return valueAt(tokens, start, ";");
}

/** The tokens between the parentheses that open at `open`. */
function argumentsAt(tokens: readonly Token[], open: number): readonly Token[] {
  return tokens.slice(open + 1, closing(tokens, open));
}

/** The tokens of an expression: up to one of `ends`, or the bracket that closes what it is in. */
function valueAt(tokens: readonly Token[], start: number, ends = ";,"): readonly Token[] {
  let at = start;
  for (; at < tokens.length; at++) {
    const { kind, text } = tokens[at] as Token;
    if (kind !== "mark") continue;
    if (ends.includes(text) || ")]}".includes(text)) break;
    if ("([{".includes(text)) at = closing(tokens, at);
  }
  return tokens.slice(start, at);
}

/** The index of the bracket that closes the one at `open`. */
function closing(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    const { kind, text } = tokens[at] as Token;
    if (kind !== "mark") continue;
    if ("([{".includes(text)) depth++;
    if (")]}".includes(text) && --depth === 0) return at;
  }
  return tokens.length;
}

function isMark(token: Token | undefined, text: string): boolean {
  return token?.kind === "mark" && token.text === text;
}

function isWord(token: Token | undefined, ...texts: readonly string[]): boolean {
  return token?.kind === "word" && texts.includes(token.text);
}

function isString(token: Token | undefined, ...texts: readonly string[]): boolean {
  return token?.kind === "string" && texts.includes(token.text);
}
