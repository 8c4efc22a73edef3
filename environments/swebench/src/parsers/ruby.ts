import { PyError, strip } from "@aenv/benchmark";
import { Pattern } from "../python/pattern.ts";
import { byWord, parseLines } from "./line-results.ts";
import { eachLine, eachLineWith } from "./lines.ts";
import type { ParserContext, StatusMap } from "./parser.ts";
import { newStatusMap } from "./status-map.ts";

/** `Test#name. = 0.01 s = .`: the same as the pattern `(.+)\. .*=.*(\.|F|E).*$`, in linear time. */
export function parseMinitest(log: string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    if (!line.includes("=")) return;
    const text = strip(line);
    const result = Math.max(text.lastIndexOf("."), text.lastIndexOf("F"), text.lastIndexOf("E"));
    const equals = result > 0 ? text.lastIndexOf("=", result - 1) : -1;
    const name = equals >= 2 ? text.lastIndexOf(". ", equals - 2) : -1;
    if (name >= 1) map.set(text.slice(0, name), text[result] === "." ? "PASSED" : "FAILED");
  });
  return map;
}

const CUCUMBER_LINE = new Pattern("(.*) \\.+(\\.|F)");
const readCucumber = byWord(2, 1, { ".": "PASSED", F: "FAILED" });

export function parseCucumber(log: string): StatusMap {
  return parseLines(log, [" ."], CUCUMBER_LINE, readCucumber);
}

const UNIT_LINE = new Pattern("\\s*(?:test: )?(.+):\\s+(\\.|E\\b|F\\b|O\\b)");
const readUnit = byWord(2, 1, { ".": "PASSED", E: "FAILED", F: "FAILED", O: "SKIPPED" });

export function parseRubyUnit(log: string): StatusMap {
  return parseLines(log, [":"], UNIT_LINE, readUnit);
}

const [RSPEC_PASSED, RSPEC_FAILED] = [" - passed", " - failed"];

/** `name - passed`: the same as the pattern `(.+) - (passed|failed)`. The last result of a line counts. */
export function parseRspecTransformedJson(log: string): StatusMap {
  const map = newStatusMap();
  eachLineWith(log, [RSPEC_PASSED, RSPEC_FAILED], (line) => {
    const text = strip(line);
    const [passed, failed] = [text.lastIndexOf(RSPEC_PASSED), text.lastIndexOf(RSPEC_FAILED)];
    const end = Math.max(passed, failed);
    if (end > 0) map.set(text.slice(0, end), end === passed ? "PASSED" : "FAILED");
  });
  return map;
}

const JEKYLL: Readonly<Record<string, (log: string) => StatusMap>> = {
  "9141": parseMinitest,
  "8047": parseMinitest,
  "8167": parseMinitest,
  "8761": parseCucumber,
  "8771": parseCucumber,
};

export function parseJekyll(log: string, { instanceId }: ParserContext): StatusMap {
  const number = instanceId.split("-")[1];
  if (number === undefined) throw new PyError("IndexError", `the instance id '${instanceId}' has no number`);
  const parse = Object.hasOwn(JEKYLL, number) ? JEKYLL[number] : undefined;
  if (parse === undefined) throw new PyError("ValueError", `no parser is known for instance '${instanceId}'`);
  return parse(log);
}
