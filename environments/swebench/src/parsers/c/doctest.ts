import { RaisedError } from "../../python/raised.ts";
import { descendants } from "../../xml/element.ts";
import { readXml } from "../../xml/reader.ts";
import type { StatusMap } from "../parser.ts";

const END = "</doctest>";

/** The XML report of doctest: a result per subcase. */
export function parseDoctest(log: string): StatusMap {
  const map: StatusMap = new Map();
  const start = log.indexOf("<doctest");
  if (start < 0) return map;
  const end = log.indexOf(END, start);
  if (end < 0) throw new RaisedError("ParseError", "the report of doctest has no end");
  const root = readXml(log.slice(start, end + END.length));
  for (const test of descendants(root, "TestCase")) {
    for (const part of descendants(test, "SubCase")) {
      const hasPassed = descendants(part, "Expression").every((expression) => expression.attributes.get("success") === "true");
      // A missing name is Python's `None` in the reference.
      const names = [test, part].map(({ attributes }) => attributes.get("name") ?? "None");
      map.set(names.join(" > "), hasPassed ? "PASSED" : "FAILED");
    }
  }
  return map;
}
