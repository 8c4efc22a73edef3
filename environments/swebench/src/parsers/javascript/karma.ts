import { collapse, indentOf, isSpace, PyError } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { withoutAnsi } from "../ansi.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";
import { FailureLine } from "./failure-line.ts";

const BPMN_PHANTOM = ["[\\d.]+", "x86_64"].map((system) => new FailureLine("2KPhantomJS", `\\s[\\d.]+\\s\\(Linux\\s${system}\\)\\s`, "\n"));
const BPMN_CHROME = new Pattern("Chrome\\sHeadless\\s(.*)\\s\\(Linux\\sx86_64\\)\\s(.*)FAILED\\n");
const BPMN_HEADLESS = new FailureLine("HeadlessChrome", "\\s[\\d.]+\\s\\(Linux\\s[\\d.]+\\)\\s", "\n");

/** Failures only. Names are not stripped and usually end with a blank. Most logs are not searched with all patterns. */
export function parseBpmnJs(log: string): StatusMap {
  const map = newStatusMap();
  const add = (name: string): void => void map.set(name, "FAILED");
  if (log.includes("KPhantomJS")) for (const line of BPMN_PHANTOM) line.eachName(log, add);
  if (log.includes("_64)")) for (const found of BPMN_CHROME.findAll(log)) add(found[2] ?? "");
  BPMN_HEADLESS.eachName(log, add);
  return map;
}

const OPENLAYERS_FAILURES = [
  new Pattern("Chrome\\sHeadless\\s[\\d.]+\\s\\(Linux\\s\\S+\\)\\s(.*)\\sFAILED\\n", "M"),
  new Pattern("Chrome\\s[\\d.]+\\s\\(Linux\\s\\S+\\)\\s(.*)FAILED\\n", "M"),
  new Pattern("^\\s{2}\\d+\\)([\\s\\S]*?)Error:", "M"),
  new Pattern("^case\\s(.*):\\smismatch", "M"),
];

/** Failures only. */
export function parseOpenlayers(log: string): StatusMap {
  const map = newStatusMap();
  for (const pattern of OPENLAYERS_FAILURES) {
    for (const [, name = ""] of pattern.findAll(log)) map.set(collapse(name), "FAILED");
  }
  return map;
}

const CHART_FAILURE = new FailureLine("Chrome", "\\s[\\d.]+[^\\S\\r\\n]\\(.+?\\)[^\\S\\r\\n]", "$");

/** Failures only. */
export function parseChartJs(log: string): StatusMap {
  const map = newStatusMap();
  CHART_FAILURE.eachName(withoutAnsi(log), (name) => map.set(name, "FAILED"));
  return map;
}

const START = "Starting browser";
const PASS_MARK = 0x2714; // ✔
const FAIL_MARK = 0x2716; // ✖

/**
 * The tree of the reporter "mocha". A suite that is less indented than the one before removes one name and is not added itself, as in
 * the reference.
 */
export function parseKarma(log: string): StatusMap {
  const map = newStatusMap();
  const suites: string[] = [];
  let prefix = "";
  let current = -1;
  let hasStarted = false;
  for (const line of log.split("\n")) {
    if (line.startsWith("SUMMARY:")) return map;
    if (line.includes(START)) {
      hasStarted = true;
      continue;
    }
    if (!hasStarted) continue;
    const indent = indentOf(line);
    const mark = line.charCodeAt(indent);
    if ((mark === PASS_MARK || mark === FAIL_MARK) && isSpace(line.charCodeAt(indent + 1))) {
      map.set(prefix + line.slice(indent + 2), mark === PASS_MARK ? "PASSED" : "FAILED");
      continue;
    }
    // The pattern of the reference is `(\s*)?([✔✖])?\s(.*)$`: one blank is not a part of the indentation.
    const depth = indent - 1;
    if (depth <= 0 || depth === current) continue;
    if (depth > current) suites.push(line.slice(indent));
    else if (suites.pop() === undefined) throw new PyError("IndexError", "a suite ends that has not begun");
    current = depth;
    prefix = suites.map((suite) => `${suite} > `).join("");
  }
  return map;
}
