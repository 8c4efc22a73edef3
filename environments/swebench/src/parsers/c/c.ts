import { Pattern } from "../../python/pattern.ts";
import { byWord, parseLines } from "../line-results.ts";
import type { StatusMap } from "../parser.ts";

const REDIS_LINE = new Pattern("\\[(ok|err|skip|ignore)\\]:\\s(.+?)(?:\\s\\((\\d+\\s*m?s)\\))?$");
const REDIS_FILE = new Pattern("\\s+in\\s+\\S+$");
const readRedis = byWord(1, 2, { ok: "PASSED", skip: "SKIPPED", ignore: "SKIPPED", err: "FAILED" });

/** Names of failed tests are without the file at their end: `name in tests/unit/x.tcl`. */
export function parseRedis(log: string): StatusMap {
  return parseLines(log, ["]:"], REDIS_LINE, (match) => {
    const result = readRedis(match);
    return result !== null && match[1] === "err" ? [REDIS_FILE.replace(result[0], ""), result[1]] : result;
  });
}

const JQ_LINE = new Pattern("\\s*(PASS|FAIL):\\s(.+)$");
const readJq = byWord(1, 2, { PASS: "PASSED", FAIL: "FAILED" });

export function parseJq(log: string): StatusMap {
  return parseLines(log, ["PASS:", "FAIL:"], JQ_LINE, readJq);
}

const MICROPYTHON_LINE = new Pattern("(pass|FAIL|skip)\\s+(.+)$");
const readMicropython = byWord(1, 2, { pass: "PASSED", FAIL: "FAILED", skip: "SKIPPED" });

export function parseMicropythonTest(log: string): StatusMap {
  return parseLines(log, ["pass", "FAIL", "skip"], MICROPYTHON_LINE, readMicropython);
}

const GOOGLETEST_LINE = new Pattern(".*\\[\\s*(OK|FAILED)\\s*\\]\\s(.*)\\s\\(.*\\)$");
const readGoogletest = byWord(1, 2, { OK: "PASSED", FAILED: "FAILED" });

/** Lines without a duration belong to the summary. */
export function parseGoogletest(log: string): StatusMap {
  return parseLines(log, ["OK", "FAILED"], GOOGLETEST_LINE, readGoogletest);
}
