import { afterLast, before, words } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { eachLine } from "../lines.ts";
import { STATUSES, type StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

export function parsePytest(log: string): StatusMap {
  return parseSummary(log, (name) => name);
}

/** Paths in the parameters of a test are shortened to their last part. */
export function parsePytestOptions(log: string): StatusMap {
  return parseSummary(log, shortenOption);
}

export function parseMatplotlib(log: string): StatusMap {
  return parsePytest(log.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3"));
}

/** Lines `STATUS name with blanks` and `name with blanks STATUS`, with colours removed. */
export function parsePytestV2(log: string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (raw) => {
    const line = withoutColours(raw);
    if (startsWithStatus(line)) {
      const [status = "", ...name] = words(line.startsWith("FAILED") ? before(line, " - ") : line);
      if (name.length > 0 && !isSkipSummary(status, name[0] ?? "")) map.set(name.join(" "), status);
    } else if (STATUSES.some((status) => line.endsWith(status))) {
      const all = words(line);
      const status = all.pop() ?? "";
      if (all.length > 0) map.set(all.join(" "), status);
    }
  });
  return map;
}

/** The status is the whole first word, also `ERROR:` or `PASSEDx`. */
function parseSummary(log: string, rename: (name: string) => string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    if (!startsWithStatus(line)) return;
    const [status = "", name] = words(line.startsWith("FAILED") ? line.replaceAll(" - ", " ") : line, 2);
    if (name !== undefined && !isSkipSummary(status, name)) map.set(rename(name), status);
  });
  return map;
}

function startsWithStatus(line: string): boolean {
  return STATUSES.some((status) => line.startsWith(status));
}

const COUNT = new Pattern("\\[\\d+\\]$");

/** `SKIPPED [3] file.py:10: reason` counts tests and names none. */
function isSkipSummary(status: string, name: string): boolean {
  return status === "SKIPPED" && COUNT.match(name) !== null;
}

function shortenOption(name: string): string {
  const start = name.indexOf("[");
  const end = name.lastIndexOf("]");
  if (start < 0 || end < start) return name;
  const option = name.slice(start + 1, end);
  const isPath = option.startsWith("/") && !option.startsWith("//") && !option.includes("*");
  return `${name.slice(0, start)}[${isPath ? `/${afterLast(option, "/")}` : option}]`;
}

const COLOUR = new Pattern("\\[(\\d+)m");
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\x01-\x1f]/g;

function withoutColours(line: string): string {
  return (line.includes("[") ? COLOUR.replace(line, "") : line).replace(CONTROLS, "");
}
