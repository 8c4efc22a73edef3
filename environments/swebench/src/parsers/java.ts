import { strip } from "@aenv/benchmark";
import { Pattern } from "../python/pattern.ts";
import { byWord, parseLines } from "./line-results.ts";
import { eachLine } from "./lines.ts";
import type { StatusMap } from "./parser.ts";
import { newStatusMap } from "./status-map.ts";

const MAVEN_TEST = new Pattern(".*-Dtest=(\\S+).*$");
const MAVEN_RESULTS = [
  ["BUILD SUCCESS", "PASSED"],
  ["BUILD FAILURE", "FAILED"],
] as const;

/** Each command `mvn -Dtest=name` is a test, and the results of the builds follow in the order of the commands. */
export function parseMaven(log: string): StatusMap {
  const map = newStatusMap();
  const tests: string[] = [];
  /** Results of builds before the first command. */
  const early: string[] = [];
  eachLine(log, (line) => {
    const text = strip(line);
    const test = text.includes("-Dtest=") ? MAVEN_TEST.match(text)?.[1] : undefined;
    if (test !== undefined) tests.push(test);
    const status = MAVEN_RESULTS.find(([ending]) => text.endsWith(ending))?.[1];
    if (status === undefined) return;
    const next = tests.shift();
    if (next === undefined) early.push(status);
    else map.set(next, status);
  });
  for (const status of early) {
    const next = tests.shift();
    if (next !== undefined) map.set(next, status);
  }
  return map;
}

const ANT_LINE = new Pattern("\\s*\\[junit\\]\\s+\\[(PASS|FAIL|ERR)\\]\\s+(.*)$");
const readAnt = byWord(1, 2, { PASS: "PASSED", FAIL: "FAILED", ERR: "FAILED" });

export function parseAnt(log: string): StatusMap {
  return parseLines(log, ["[junit]"], ANT_LINE, readAnt);
}

const GRADLE_RESULT = new Pattern("([^>].+)\\s+(PASSED|FAILED)$");
const GRADLE_NAME = new Pattern("([^>]\\S*\\s+>\\s+\\S+)$");

/** A result is on the line of its test, or on a later line of its own. */
export function parseGradleCustom(log: string): StatusMap {
  const map = newStatusMap();
  let pending: string | null = null;
  eachLine(log, (line) => {
    const text = strip(line);
    const isResult = text.endsWith("PASSED") || text.endsWith("FAILED");
    const found = isResult ? GRADLE_RESULT.match(text) : null;
    if (found !== null) {
      map.set(found[1] ?? "", found[2] ?? "");
      pending = null;
      return;
    }
    const name = text.includes(">") ? GRADLE_NAME.match(text)?.[1] : undefined;
    if (name !== undefined) pending = name;
    else if (pending !== null && (text === "PASSED" || text === "FAILED")) {
      map.set(pending, text);
      pending = null;
    }
  });
  return map;
}
