import { afterLast, cutTail, indentOf, isSpace, PyError, strip } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { eachLine } from "../lines.ts";
import type { ParserContext, Status, StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";
import { IndentStack } from "./indent-stack.ts";

const PASS_MARK = 0x2713; // ✓
const FAIL_MARK = 0x2715; // ✕
const JEST_MARKS: Marks = new Map([
  [PASS_MARK, "PASSED"],
  [FAIL_MARK, "FAILED"],
  [0x25cb, "SKIPPED"], // ○
]);
const JEST_TIME = new Pattern("\\s\\((\\d+\\s*m?s)\\)$");

export function parseJest(log: string): StatusMap {
  return parseMarks(log, JEST_MARKS, (text) => (text.endsWith("s)") ? JEST_TIME.search(text) : null), strip);
}

const VITEST_MARKS: Marks = new Map([
  [0x2713, "PASSED"], // ✓
  [0x00d7, "FAILED"], // ×
  [0x2193, "SKIPPED"], // ↓
]);
const VITEST_END = new Pattern("\\s(\\d+\\s*m?s?|\\[skipped\\])$");

/** A number at the end is a time, also without a unit. */
export function parseVitest(log: string): StatusMap {
  return parseMarks(
    log,
    VITEST_MARKS,
    (text) => VITEST_END.search(text),
    (name) => name,
  );
}

/** Statuses by the code of the first character. */
type Marks = ReadonlyMap<number, Status>;

/** Lines `✓ name (3 ms)`: the mark, one blank, a name of at least one character, and an ending that is no part of the name. */
function parseMarks(
  log: string,
  marks: Marks,
  findEnding: (text: string) => RegExpExecArray | null,
  clean: (name: string) => string,
): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    const status = marks.get(line.charCodeAt(indentOf(line)));
    if (status === undefined) return;
    const text = strip(line);
    if (text.length < 3 || !isSpace(text.charCodeAt(1))) return;
    const end = findEnding(text)?.index ?? text.length;
    map.set(clean(text.slice(2, end >= 3 ? end : undefined)), status);
  });
  return map;
}

const JSON_LINE = new Pattern("\\[(PASSED|FAILED)\\]\\s(.+)$");

export function parseJestJson(log: string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    const found = line.includes("ED]") ? JSON_LINE.match(strip(line)) : null;
    if (found !== null) map.set(found[2] ?? "", found[1] ?? "");
  });
  return map;
}

export function parseImmutableJs(log: string, { instanceId }: ParserContext): StatusMap {
  const number = afterLast(instanceId, "-");
  if (number === "2006") return parseJest(log);
  if (number === "2005") return parseJestJson(log);
  throw new PyError("ValueError", `no parser is known for instance '${instanceId}'`);
}

const SUITE_RESULTS = (["PASS", "FAIL"] as const).map((word) => ({
  word,
  status: `${word}ED`,
  patterns: ["\\s\\([\\d.]+ms\\)", "\\s\\([\\d.]+\\ss\\)", "\\s\\([\\d.]+s\\)"].map((time) => new Pattern(`${word}\\s(.*)${time}`)),
}));

/** Files as tests: `PASS file (1.2 s)`. Text behind the time is dropped. */
export function parseCarbon(log: string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    const result = SUITE_RESULTS.find(({ word }) => line.startsWith(word));
    if (result === undefined || !isSpace(line.charCodeAt(4))) return;
    let name = line.slice(5);
    if (line.includes("s)")) {
      for (const pattern of result.patterns) {
        const found = pattern.match(line);
        if (found === null) continue;
        name = found[1] ?? "";
        break;
      }
    }
    map.set(name, result.status);
  });
  return map;
}

const GROMMET = [
  { pattern: new Pattern("^FAIL\\s(.*)", "M"), status: "FAILED" },
  { pattern: new Pattern("^PASS\\s(.*)", "M"), status: "PASSED" },
] as const;
const GROMMET_TIME = new Pattern("\\s\\([\\d.]+\\s?(?:ms|s)\\)$");

/** A file that both failed and passed has passed. */
export function parseGrommet(log: string): StatusMap {
  const map = newStatusMap();
  for (const { pattern, status } of GROMMET) {
    for (const [, name = ""] of pattern.findAll(log)) map.set(GROMMET_TIME.replace(strip(name), ""), status);
  }
  return map;
}

const CALYPSO_COMMAND = " ./node_modules/.bin/jest ";
const CALYPSO_TIME = new Pattern("\\(\\d+ms\\)");
const CALYPSO_END = new Pattern("\\(\\d+ms\\)$");

/** Names of tests outside of suites start with `- `, as in the reference. */
export function parseCalypso(log: string): StatusMap {
  const map = newStatusMap();
  const stack = new IndentStack();
  for (const piece of cutTail(log, CALYPSO_COMMAND)) {
    for (const line of piece.split("\n")) {
      const indent = indentOf(line);
      if ((indent === 0 && line.startsWith("Test Suites")) || (indent === 2 && line.startsWith("  ● "))) break;
      const mark = line.charCodeAt(indent);
      if (mark === PASS_MARK || mark === FAIL_MARK) {
        const name = strip(`${stack.joined} - ${calypsoName(line, indent)}`);
        map.set(name, mark === PASS_MARK ? "PASSED" : "FAILED");
      } else stack.add(line, indent);
    }
  }
  return map;
}

/** `\s+✓\s(.*)`; with `\(\d+ms\)$` behind it if the line has such a time. */
function calypsoName(line: string, indent: number): string {
  const start = indent + 2;
  const isTimed = line.includes("ms)") && CALYPSO_TIME.search(line) !== null;
  const end = isTimed ? (CALYPSO_END.search(line)?.index ?? -1) : line.length;
  if (indent === 0 || !isSpace(line.charCodeAt(indent + 1)) || end < start)
    throw new PyError("AttributeError", `the line '${line}' has no name of a test`);
  return line.slice(start, end);
}
