import { indentOf, isSpace, strip } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { byWord, parseLines } from "../line-results.ts";
import { eachLineWith } from "../lines.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

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

const MICROPYTHON_WORDS = { pass: "PASSED", FAIL: "FAILED", skip: "SKIPPED" } as const;
type MicropythonWord = keyof typeof MICROPYTHON_WORDS;

/** `pass  name`: the same as the pattern `(pass|FAIL|skip)\s+(.+)$`. */
export function parseMicropythonTest(log: string): StatusMap {
  const map = newStatusMap();
  const words = Object.keys(MICROPYTHON_WORDS) as MicropythonWord[];
  eachLineWith(log, words, (line) => {
    const text = strip(line);
    const word = words.find((one) => text.startsWith(one));
    if (word === undefined) return;
    const name = indentOf(text, word.length);
    if (name > word.length && name < text.length) map.set(text.slice(name), MICROPYTHON_WORDS[word]);
  });
  return map;
}

/**
 * `[  OK  ] name (3 ms)`: the same as the pattern `.*\[\s*(OK|FAILED)\s*\]\s(.*)\s\(.*\)$`, in linear time. Lines without a duration
 * belong to the summary.
 */
export function parseGoogletest(log: string): StatusMap {
  const map = newStatusMap();
  eachLineWith(log, ["OK", "FAILED"], (line) => {
    const end = line.lastIndexOf(")");
    if (end < 0 || indentOf(line, end + 1) < line.length) return;
    let time = line.lastIndexOf("(", end);
    while (time > 0 && !isSpace(line.charCodeAt(time - 1))) time = line.lastIndexOf("(", time - 1);
    for (let open = time; open > 0; ) {
      open = line.lastIndexOf("[", open - 1);
      const word = open < 0 ? "" : wordAt(line, indentOf(line, open + 1));
      if (word === "") continue;
      const close = indentOf(line, indentOf(line, open + 1) + word.length);
      if (line[close] !== "]" || !isSpace(line.charCodeAt(close + 1)) || close + 2 > time - 1) continue;
      map.set(line.slice(close + 2, time - 1), word === "OK" ? "PASSED" : "FAILED");
      return;
    }
  });
  return map;
}

function wordAt(line: string, at: number): "OK" | "FAILED" | "" {
  if (line.startsWith("OK", at)) return "OK";
  return line.startsWith("FAILED", at) ? "FAILED" : "";
}
