import { words } from "@aenv/benchmark";
import { eachLine } from "../lines.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

export function parseSeaborn(log: string): StatusMap {
  const map = newStatusMap();
  eachLine(log, (line) => {
    if (!line.includes("PASSED") && !line.startsWith("FAILED")) return;
    const [first, second] = words(line, 2);
    if (first === undefined || second === undefined) return;
    if (line.startsWith("FAILED")) map.set(second, "FAILED");
    else if (line.includes(" PASSED ")) {
      if (second === "PASSED") map.set(first, "PASSED");
    } else if (line.startsWith("PASSED")) map.set(second, "PASSED");
  });
  return map;
}
