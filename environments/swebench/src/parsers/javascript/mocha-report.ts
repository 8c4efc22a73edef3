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

/** The whitespace of a text: at the start of a line of this depth, before a comma, and around a colon. */
interface Layout {
  readonly line: (depth: number) => string;
  readonly end: string;
  readonly colon: string;
}

const ANY_LAYOUT: Layout = { line: () => BLANK, end: BLANK, colon: `${BLANK}:${BLANK}` };
/** That of `JSON.stringify(report, null, 2)`, which mocha writes. Literal text is matched several characters at a time. */
const OWN_LAYOUT: Layout = { line: (depth) => `\\n${" ".repeat(depth)}`, end: "", colon: ": " };

/** A test with the members that mocha writes, in its order, and what follows it in its list. */
function testPattern(content: string, error: string, { line, end, colon }: Layout): RegExp {
  const string = `"${content}"`;
  const member = (key: string, value: string) => `${line(6)}"${key}"${colon}${value}${end}`;
  const optional = (key: string, value: string) => `(?:,${member(key, value)})?`;
  const parts = [
    `${line(4)}\\{${member("title", string)},${member("fullTitle", `"(${content})"`)}`,
    ...[optional("file", string), optional("duration", NUMBER), optional("currentRetry", NUMBER), optional("speed", string)],
    ...[optional("err", error), `${line(4)}\\}(?:${end},|${line(2)}\\])`],
  ];
  return new RegExp(parts.join(""), "y");
}

/** Most tests first: strings without escape sequences are matched faster, too. */
const TESTS = [
  { pattern: testPattern(PLAIN, "\\{\\}", OWN_LAYOUT), isPlain: true },
  { pattern: testPattern(PLAIN, `\\{${BLANK}\\}`, ANY_LAYOUT), isPlain: true },
  { pattern: testPattern(ESCAPED, VALUE, ANY_LAYOUT), isPlain: false },
] as const;
const [FAILURES, PASSES] = ['"failures"', '"passes"'];
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
    at = isList ? readList(text, at + 1, key === FAILURES || key === PASSES ? titles : null) : endOf(OTHER, text, at);
    lists.set(key, isList || text[at - 1] === "]" ? titles : null);
    next = (at < 0 ? null : groupOf(NEXT, text, at)) ?? "";
    if (next === "") return null;
    at = NEXT.lastIndex;
  }
  const [failures, passes] = [lists.get(FAILURES), lists.get(PASSES)];
  return failures == null || passes == null || at < text.length ? null : { failures, passes };
}

/** The end of a list of tests, whose titles are added if they are wanted; -1 if it is not such a list. */
function readList(text: string, start: number, titles: string[] | null): number {
  for (let at = start; ; ) {
    at = readTest(text, at, titles);
    if (at < 0 || text[at - 1] === "]") return at;
  }
}

function readTest(text: string, at: number, titles: string[] | null): number {
  for (const { pattern, isPlain } of TESTS) {
    if (titles === null) {
      const end = endOf(pattern, text, at);
      if (end >= 0) return end;
      continue;
    }
    const title = groupOf(pattern, text, at);
    if (title === null) continue;
    titles.push(isPlain ? title : JSON.parse(`"${title}"`));
    return pattern.lastIndex;
  }
  return -1;
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
