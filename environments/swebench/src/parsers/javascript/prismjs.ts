import { after, beforeLast, cutTail, isList, isObject, type Json, PyError, readJson } from "@aenv/benchmark";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";
import { readTitles } from "./mocha-report.ts";

const COMMAND = "./node_modules/.bin/mocha tests/run.js --reporter json";

/** Reports in JSON. A later `}` in the log belongs to the report, so it usually raises. */
export function parsePrismjs(log: string): StatusMap {
  const map = newStatusMap();
  for (const piece of cutTail(log, COMMAND)) {
    const text = reportIn(piece);
    if (addUsual(map, text)) continue;
    const report = readJson(text);
    for (const title of titles(report, "failures")) map.set(title, "FAILED");
    for (const title of titles(report, "passes")) map.set(title, "PASSED");
  }
  return map;
}

/** The report is from the first `{` to the last `}` behind it. The reference adds one that is missing. */
function reportIn(piece: string): string {
  const start = piece.indexOf("{");
  const end = piece.lastIndexOf("}");
  // A slice costs no copy.
  if (start >= 0 && end > start) return piece.slice(start, end + 1);
  return `{${beforeLast(after(piece, "{"), "}")}}`;
}

function titles(report: Json, key: string): string[] {
  const tests = isObject(report) ? report.get(key) : undefined;
  if (tests === undefined) throw new PyError("KeyError", `the report of mocha has no '${key}'`);
  if (isList(tests)) return tests.map(fullTitle);
  // An empty object or string has no elements to read a title of.
  if (tests === "" || (isObject(tests) && tests.size === 0)) return [];
  throw new PyError("TypeError", `'${key}' in the report of mocha is not a list`);
}

function fullTitle(test: Json): string {
  const title = isObject(test) ? test.get("fullTitle") : undefined;
  if (typeof title !== "string") throw new PyError("KeyError", "a test in the report of mocha has no 'fullTitle'");
  return title;
}

/** Adds the results of a report of the usual form; false for all others. */
function addUsual(map: StatusMap, text: string): boolean {
  const titles = readTitles(text);
  if (titles === null) return false;
  for (const title of titles.failures) map.set(title, "FAILED");
  for (const title of titles.passes) map.set(title, "PASSED");
  return true;
}
