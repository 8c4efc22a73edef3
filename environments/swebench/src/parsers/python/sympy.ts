import { strip, words } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { eachLine } from "../lines.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

const FAILURE = new Pattern("(_*) (.*)\\.py:(.*) (_*)");
const ENDINGS = [
  [" E", "ERROR"],
  [" F", "FAILED"],
  [" ok", "PASSED"],
] as const;

export function parseSympy(log: string): StatusMap {
  const map = newStatusMap();
  // A match never spans lines, so lines without `.py:` need no search.
  eachLine(log, (line) => {
    if (!line.includes(".py:")) return;
    for (const [, , file, test] of FAILURE.findAll(line)) map.set(`${file}.py:${test}`, "FAILED");
  });
  eachLine(log, (line) => {
    if (!line.includes("test_")) return;
    const text = strip(line);
    if (!text.startsWith("test_")) return;
    for (const [ending, status] of ENDINGS) if (text.endsWith(ending)) map.set(words(text, 1)[0] ?? "", status);
  });
  return map;
}
