/** The titles of the tests in a report of mocha. */
export interface ReportTitles {
  readonly failures: readonly string[];
  readonly passes: readonly string[];
}

// Pieces of JSON. Each alternative begins with another character, so nothing is matched in two ways.
const BLANK = "[ \\t\\n\\r]*";
const PLAIN = '[^"\\\\\\x00-\\x1f]*';
const ESCAPED = `${PLAIN}(?:\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4})${PLAIN})*`;
const STRING = `"${ESCAPED}"`;
const NUMBER = "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?";
const SCALAR = `(?:${STRING}|${NUMBER}|true|false|null)`;
const MEMBER = `${BLANK}${STRING}${BLANK}:${BLANK}${SCALAR}${BLANK}`;
/** An object in an object is that of an error. */
const VALUE = `(?:${SCALAR}|\\{(?:${MEMBER}(?:,${MEMBER})*|${BLANK})\\}|\\[${BLANK}\\])`;

const member = (key: string, value: string) => `"${key}"${BLANK}:${BLANK}${value}${BLANK}`;
const optional = (key: string, value: string) => `(?:,${BLANK}${member(key, value)})?`;

/** A test with the members that mocha writes, in its order, and what follows it in its list. */
function testPattern(content: string, error: string): RegExp {
  const string = `"${content}"`;
  const parts = [
    `${BLANK}\\{${BLANK}${member("title", string)},${BLANK}${member("fullTitle", `"(${content})"`)}`,
    ...[optional("file", string), optional("duration", NUMBER), optional("currentRetry", NUMBER), optional("speed", string)],
    ...[optional("err", error), `\\}${BLANK}[,\\]]`],
  ];
  return new RegExp(parts.join(""), "y");
}

/** Most tests: strings without escape sequences are matched faster. */
const PLAIN_TEST = testPattern(PLAIN, `\\{${BLANK}\\}`);
const TEST = testPattern(ESCAPED, VALUE);
const KEY = new RegExp(`${BLANK}("${PLAIN}")${BLANK}:${BLANK}`, "y");
const OTHER = new RegExp(VALUE, "y");
const EMPTY = new RegExp(`\\[${BLANK}\\]`, "y");
const NEXT = new RegExp(`${BLANK}([,}])`, "y");

/**
 * Reads the titles without making objects of the rest, which is checked only. Null for everything unusual, also for text that is not
 * JSON: a reader of JSON has to decide on it.
 */
export function readTitles(text: string): ReportTitles | null {
  const lists = new Map<string, string[] | null>();
  if (!text.startsWith("{")) return null;
  let at = 1;
  for (let next = ","; next === ","; ) {
    const key = groupOf(KEY, text, at);
    if (key === null || lists.has(key)) return null;
    at = KEY.lastIndex;
    const isList = text.startsWith("[", at) && endOf(EMPTY, text, at) < 0;
    const titles: string[] = [];
    at = isList ? readList(text, at + 1, titles) : endOf(OTHER, text, at);
    lists.set(key, isList || text[at - 1] === "]" ? titles : null);
    next = (at < 0 ? null : groupOf(NEXT, text, at)) ?? "";
    if (next === "") return null;
    at = NEXT.lastIndex;
  }
  const [failures, passes] = [lists.get('"failures"'), lists.get('"passes"')];
  return failures == null || passes == null || at < text.length ? null : { failures, passes };
}

/** The end of a list of tests, whose titles are added; -1 if it is not such a list. */
function readList(text: string, start: number, titles: string[]): number {
  for (let at = start; ; ) {
    const plain = groupOf(PLAIN_TEST, text, at);
    const escaped = plain === null ? groupOf(TEST, text, at) : null;
    if (plain === null && escaped === null) return -1;
    titles.push(plain ?? JSON.parse(`"${escaped}"`));
    at = (plain === null ? TEST : PLAIN_TEST).lastIndex;
    if (text[at - 1] === "]") return at;
  }
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** The first group of a match; then `lastIndex` is the end of the match. */
function groupOf(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[1] ?? null;
}
