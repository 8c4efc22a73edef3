import { Pattern } from "../python/pattern.ts";
import { byWord, parseLines } from "./line-results.ts";
import { eachLine } from "./lines.ts";
import type { StatusMap } from "./parser.ts";
import { newStatusMap } from "./status-map.ts";

const GO_LINE = new Pattern("--- (PASS|FAIL|SKIP): (.+) \\((.+)\\)$");
const readGo = byWord(1, 2, { PASS: "PASSED", FAIL: "FAILED", SKIP: "SKIPPED" });

export function parseGotest(log: string): StatusMap {
  return parseLines(log, ["--- "], GO_LINE, readGo);
}

const CARGO_LINE = new Pattern("test\\s+(\\S+)\\s+\\.\\.\\.\\s+(\\w+)$");
const readCargo = byWord(2, 1, { ok: "PASSED", FAILED: "FAILED" });

export function parseCargo(log: string): StatusMap {
  return parseLines(log, ["..."], CARGO_LINE, readCargo);
}

const PHP_SUITE = new Pattern("(\\w.+) \\(.+\\)$");
const PHP_TEST = new Pattern("\\s*([✔✘↩])\\s*(.*)$");
const readPhp = byWord(1, 2, { "✔": "PASSED", "✘": "FAILED", "↩": "SKIPPED" });

/** Tests before the first suite belong to the suite `None`, as in the reference. */
export function parsePhpunit(log: string): StatusMap {
  const map = newStatusMap();
  let suite = "None";
  eachLine(log, (line) => {
    const found = line.endsWith(")") ? PHP_SUITE.match(line) : null;
    if (found !== null) {
      suite = found[1] ?? "";
      return;
    }
    const test = PHP_TEST.match(line);
    const result = test === null ? null : readPhp(test);
    if (result !== null) map.set(`${suite} > ${result[0]}`, result[1]);
  });
  return map;
}
