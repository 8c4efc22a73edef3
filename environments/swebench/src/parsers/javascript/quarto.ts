import { before, strip } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

const TEMPORARY = [new Pattern("/tmp/(\\w+)\\.qmd"), new Pattern("/tmp/(\\w+)/")];

/** Temporary paths get numbers in the order of their first occurrence, because their names differ between runs. */
export function parseQuartoCli(log: string): StatusMap {
  const map = newStatusMap();
  const numbers = new Map<string, number>();
  for (const raw of log.split("\n")) {
    if (raw.includes("ERRORS") || raw.includes("failures:")) break;
    if (!raw.includes("[smoke]") && !raw.includes("[unit]")) continue;
    const line = numberPaths(raw, numbers);
    const name = strip(before(line, "..."));
    if (isRejected(line)) continue;
    if (line.includes("32mok")) map.set(name, "PASSED");
    else if (line.includes("31mFAILED") || !map.has(name)) map.set(name, "FAILED");
  }
  return map;
}

/** All paths of a line get the number of the first; their ending `.qmd` or `/` is dropped. */
function numberPaths(raw: string, numbers: Map<string, number>): string {
  let line = raw;
  for (const pattern of TEMPORARY) {
    const path = pattern.search(line)?.[0];
    if (path === undefined) continue;
    if (!numbers.has(path)) numbers.set(path, numbers.size);
    line = pattern.replace(line, `/tmp/${numbers.get(path)}`);
  }
  return line;
}

function isRejected(line: string): boolean {
  const isSummary = ["passed", "failed", "steps"].every((word) => line.includes(word));
  return line.startsWith("test result:") || isSummary || line.includes("34mINFO");
}
