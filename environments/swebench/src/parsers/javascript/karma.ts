import { Pattern } from "../../python/pattern.ts";
import { RaisedError } from "../../python/raised.ts";
import { collapse, indentOf, isSpace } from "../../python/text.ts";
import { withoutAnsi } from "../ansi.ts";
import type { StatusMap } from "../parser.ts";

const BPMN_FAILURES = [
  { pattern: new Pattern("2KPhantomJS\\s[\\d.]+\\s\\(Linux\\s[\\d.]+\\)\\s(.*)FAILED\\n"), group: 1 },
  { pattern: new Pattern("2KPhantomJS\\s[\\d.]+\\s\\(Linux\\sx86_64\\)\\s(.*)FAILED\\n"), group: 1 },
  { pattern: new Pattern("Chrome\\sHeadless\\s(.*)\\s\\(Linux\\sx86_64\\)\\s(.*)FAILED\\n"), group: 2 },
  { pattern: new Pattern("HeadlessChrome\\s[\\d.]+\\s\\(Linux\\s[\\d.]+\\)\\s(.*)FAILED\\n"), group: 1 },
] as const;

/** Failures only. Names are not stripped and usually end with a blank. */
export function parseBpmnJs(log: string): StatusMap {
  const map: StatusMap = new Map();
  for (const { pattern, group } of BPMN_FAILURES) {
    for (const found of pattern.findAll(log)) map.set(found[group] ?? "", "FAILED");
  }
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
  const map: StatusMap = new Map();
  for (const pattern of OPENLAYERS_FAILURES) {
    for (const [, name = ""] of pattern.findAll(log)) map.set(collapse(name), "FAILED");
  }
  return map;
}

const CHART_FAILURE = new Pattern("Chrome\\s[\\d.]+[^\\S\\r\\n]\\(.+?\\)[^\\S\\r\\n](.*)FAILED$", "M");

/** Failures only. */
export function parseChartJs(log: string): StatusMap {
  const map: StatusMap = new Map();
  for (const [, name = ""] of CHART_FAILURE.findAll(withoutAnsi(log))) map.set(name, "FAILED");
  return map;
}

/**
 * The tree of the reporter "mocha". A suite that is less indented than the one before removes one name and is not added itself, as in
 * the reference.
 */
export function parseKarma(log: string): StatusMap {
  const map: StatusMap = new Map();
  const suites: string[] = [];
  let current = -1;
  let hasStarted = false;
  for (const line of log.split("\n")) {
    if (line.startsWith("SUMMARY:")) return map;
    if (line.includes("Starting browser")) {
      hasStarted = true;
      continue;
    }
    const entry = hasStarted ? readEntry(line) : null;
    if (entry === null) continue;
    if (entry.mark !== "") map.set([...suites, entry.name].join(" > "), entry.mark === "✔" ? "PASSED" : "FAILED");
    else if (entry.indent > current && entry.indent > 0) {
      current = entry.indent;
      suites.push(entry.name);
    } else if (entry.indent < current && entry.indent > 0) {
      current = entry.indent;
      if (suites.pop() === undefined) throw new RaisedError("IndexError", "a suite ends that has not begun");
    }
  }
  return map;
}

/** `(\s*)?([✔✖])?\s(.*)$`: the blank before the name is not a part of the indentation. */
function readEntry(line: string): { readonly indent: number; readonly mark: string; readonly name: string } | null {
  const indent = indentOf(line);
  const mark = line.charAt(indent);
  if ((mark === "✔" || mark === "✖") && isSpace(line.charCodeAt(indent + 1))) return { indent, mark, name: line.slice(indent + 2) };
  return indent === 0 ? null : { indent: indent - 1, mark: "", name: line.slice(indent) };
}
