import { after, collapse, strip } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { eachLine } from "../lines.ts";
import type { Status, StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";
import { findSummary } from "./summary.ts";

const SUMMARY = new Pattern("\\n[ \\t]*\\d+ passing");
const DURATION = new Pattern("\\(\\d+ms\\)");
const NUMBERED = new Pattern("\\d+\\)");

export function parseHighlightjs(log: string): StatusMap {
  const map = newStatusMap();
  let prefix = "";
  const set = (text: string, mark: string, status: Status): void => {
    const name = after(text, mark);
    map.set(prefix + strip(name.includes("ms)") ? DURATION.replace(name, "") : name), status);
  };
  eachLine(log.slice(0, findSummary(log, SUMMARY) ?? log.length), (line) => {
    const text = strip(line);
    if (text.startsWith("✓")) set(text, "✓", "PASSED");
    else if (text.startsWith("✔")) set(text, "✔", "PASSED");
    else if (text.includes(")") && NUMBERED.match(text) !== null) set(text, ")", "FAILED");
    else if (line.startsWith("  ")) prefix = `${text}.`;
  });
  return map;
}

const FAILURE = new Pattern("(\\s{2}\\d+\\))([\\s\\S]*?)\\s+(?:(.*)Error)");

/** Failures only. */
export function parseEslint(log: string): StatusMap {
  const map = newStatusMap();
  for (const [, , name = ""] of FAILURE.findAll(log)) map.set(collapse(name), "FAILED");
  return map;
}

const LINE_FAILURE = new Pattern("\\d+\\)\\s(.*)");

/** Failures only. */
export function parseMarked(log: string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    const found = line.includes(")") ? LINE_FAILURE.match(line) : null;
    if (found !== null) map.set(strip(found[1] ?? ""), "FAILED");
  });
  return map;
}
