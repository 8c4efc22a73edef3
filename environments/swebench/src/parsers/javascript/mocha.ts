import { isList, isObject, type Json, readJson } from "../../python/json-reader.ts";
import { Pattern } from "../../python/pattern.ts";
import { RaisedError } from "../../python/raised.ts";
import { after, beforeLast, collapse, cutTail, strip } from "../../python/text.ts";
import { eachLine } from "../lines.ts";
import type { Status, StatusMap } from "../parser.ts";

const SUMMARY = new Pattern("\\n[ \\t]*\\d+ passing");
const DURATION = new Pattern("\\(\\d+ms\\)");
const NUMBERED = new Pattern("\\d+\\)");

export function parseHighlightjs(log: string): StatusMap {
  const map: StatusMap = new Map();
  const end = SUMMARY.search(log)?.index ?? log.length;
  let suite: readonly string[] = [];
  eachLine(log.slice(0, end), (line) => {
    const text = strip(line);
    const set = (mark: string, status: Status) => map.set([...suite, strip(DURATION.replace(after(line, mark), ""))].join("."), status);
    if (text.startsWith("✓")) set("✓", "PASSED");
    else if (text.startsWith("✔")) set("✔", "PASSED");
    else if (NUMBERED.match(text) !== null) set(")", "FAILED");
    else if (line.startsWith("  ")) suite = [text];
  });
  return map;
}

const FAILURE = new Pattern("(\\s{2}\\d+\\))([\\s\\S]*?)\\s+(?:(.*)Error)");

/** Failures only. */
export function parseEslint(log: string): StatusMap {
  const map: StatusMap = new Map();
  for (const [, , name = ""] of FAILURE.findAll(log)) map.set(collapse(name), "FAILED");
  return map;
}

const LINE_FAILURE = new Pattern("\\d+\\)\\s(.*)");

/** Failures only. */
export function parseMarked(log: string): StatusMap {
  const map: StatusMap = new Map();
  eachLine(log, (line) => {
    const found = line.includes(")") ? LINE_FAILURE.match(line) : null;
    if (found !== null) map.set(strip(found[1] ?? ""), "FAILED");
  });
  return map;
}

const PRISM_COMMAND = "./node_modules/.bin/mocha tests/run.js --reporter json";

/** Reports in JSON. A later `}` in the log belongs to the report, so it usually raises. */
export function parsePrismjs(log: string): StatusMap {
  const map: StatusMap = new Map();
  for (const piece of cutTail(log, PRISM_COMMAND)) {
    const report = readJson(`{${beforeLast(after(piece, "{"), "}")}}`);
    for (const title of titles(report, "failures")) map.set(title, "FAILED");
    for (const title of titles(report, "passes")) map.set(title, "PASSED");
  }
  return map;
}

function titles(report: Json, key: string): string[] {
  const tests = isObject(report) ? report.get(key) : undefined;
  if (tests === undefined) throw new RaisedError("KeyError", `the report of mocha has no '${key}'`);
  if (isList(tests)) return tests.map(fullTitle);
  // An empty object or string has no elements to read a title of.
  if (tests === "" || (isObject(tests) && tests.size === 0)) return [];
  throw new RaisedError("TypeError", `'${key}' in the report of mocha is not a list`);
}

function fullTitle(test: Json): string {
  const title = isObject(test) ? test.get("fullTitle") : undefined;
  if (typeof title !== "string") throw new RaisedError("KeyError", "a test in the report of mocha has no 'fullTitle'");
  return title;
}
