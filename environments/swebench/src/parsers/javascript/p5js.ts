import { indentOf, rstrip, strip } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { withoutAnsi } from "../ansi.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

const FAILURE = new Pattern("^\\s*(\\d+)\\)(.{0,1000}?):", "MS");

/** Failures only. Output of the tests, dumps of objects and XML, is removed first. */
export function parseP5js(log: string): StatusMap {
  const map = newStatusMap();
  for (const [, , text = ""] of FAILURE.findAll(withoutXml(withoutDumps(withoutAnsi(log))))) {
    const parts = text.split("\n");
    if (isNested(parts)) map.set(parts.map(strip).join(":"), "FAILED");
  }
  return map;
}

/** A suite, its inner suites and the test are indented further and further. */
function isNested(parts: readonly string[]): boolean {
  let last = 0;
  for (const part of parts) {
    const indent = indentOf(part);
    if (indent <= last) return false;
    last = indent;
  }
  return true;
}

function withoutDumps(log: string): string {
  let inObject = false;
  let inList = false;
  const kept = log.split("\n").filter((line) => {
    const text = rstrip(line);
    if (text.endsWith("{")) inObject = true;
    else if (text.endsWith("[")) inList = true;
    else if (text === "}" && inObject) inObject = false;
    else if (text === "]" && inList) inList = false;
    else if (inObject || inList) return false;
    else return !((text.startsWith("{") && text.endsWith("}")) || (text.startsWith("[") && text.endsWith("]")));
    return false;
  });
  return kept.join("\n");
}

const ELEMENT = new Pattern("<(\\w+)>[\\s\\S]*?</\\1>");

/** Removes elements from the inside out: further opening tags of the same name inside a match are kept, for later closing tags. */
function withoutXml(log: string): string {
  let text = log;
  for (;;) {
    const found = text.includes("</") ? ELEMENT.search(text) : null;
    if (found === null) return text;
    const open = `<${found[1]}>`;
    const extra = Math.max(0, found[0].split(open).length - 2);
    text = text.slice(0, found.index) + open.repeat(extra) + text.slice(found.index + found[0].length);
  }
}
