import { PyError } from "@aenv/benchmark";
import { type Document, type Element, findAttribute, readXml } from "../../xml/reader.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

const END = "</doctest>";

/** The XML report of doctest: a result per subcase. */
export function parseDoctest(log: string): StatusMap {
  const map = newStatusMap();
  const start = log.indexOf("<doctest");
  if (start < 0) return map;
  const end = log.indexOf(END, start);
  if (end < 0) throw new PyError("ParseError", "the report of doctest has no end");
  const document = readXml(log.slice(start, end + END.length));
  for (let at = 1; at < document.length; at++) {
    const test = document[at];
    if (test?.name !== "TestCase") continue;
    const prefix = `${nameOf(test)} > `;
    for (let inside = at + 1; inside < test.end; inside++) {
      const part = document[inside];
      if (part?.name === "SubCase") map.set(prefix + nameOf(part), hasPassed(document, inside + 1, part.end) ? "PASSED" : "FAILED");
    }
  }
  return map;
}

function hasPassed(document: Document, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const element = document[at];
    if (element?.name === "Expression" && findAttribute(element, "success") !== "true") return false;
  }
  return true;
}

/** A missing name is Python's `None` in the reference. */
function nameOf(element: Element): string {
  return findAttribute(element, "name") ?? "None";
}
