import { afterLast, cutTail, lstrip, strip } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { withoutAnsi } from "../ansi.ts";
import type { ParserContext, StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";
import { IndentStack } from "./indent-stack.ts";

export function parseNext(log: string, { version }: ParserContext): StatusMap {
  return version === "1.27" ? parseCypressRuns(log) : parseKarmaRuns(log);
}

const ASSERTION = new Pattern("AssertionError:\\s+#([\\s\\S]*?)\\n\\n");
const IGNORED = ["ERROR", "LOG", "WARN", "Check", "in"] as const;

function parseKarmaRuns(log: string): StatusMap {
  const map = newStatusMap();
  const stack = new IndentStack();
  for (const piece of cutTail(ASSERTION.replace(withoutAnsi(log), ""), " xvfb-run ")) {
    for (const line of afterLast(piece, "Starting browser Chrome").split("\n")) {
      if (line.startsWith("TOTAL")) break;
      const text = strip(line);
      if (IGNORED.some((word) => text.startsWith(word))) continue;
      const failed = line.indexOf("✗");
      const mark = failed >= 0 ? failed : line.indexOf("✓");
      if (mark < 0) stack.add(line);
      else map.set(stack.nameOf(lstrip(line.slice(mark + 1))), failed >= 0 ? "FAILED" : "PASSED");
    }
  }
  return map;
}

const RUN = new Pattern("Running:(.*)\\)\\n{3}\\s{2}(.*)\\n");
const RUN_FAILURE = new Pattern("^\\s{4}\\d+\\)\\s(.*)", "M");
const RUN_SUCCESS = new Pattern("^\\s{4}✓\\s(.*)\\(", "M");

function parseCypressRuns(log: string): StatusMap {
  const map = newStatusMap();
  const runs = RUN.findAll(log);
  for (const [i, run] of runs.entries()) {
    const suite = run[2] ?? "";
    const body = log.slice(run.index + run[0].length, runs[i + 1]?.index ?? log.length);
    for (const [, name = ""] of RUN_FAILURE.findAll(body)) map.set(`${suite}: ${strip(name)}`, "FAILED");
    for (const [, name = ""] of RUN_SUCCESS.findAll(body)) map.set(`${suite}: ${strip(name)}`, "PASSED");
  }
  return map;
}
