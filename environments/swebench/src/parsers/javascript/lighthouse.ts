import { afterLast, beforeLast, cutTail, strip, toFloat } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import type { ParserContext, StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";
import { IndentStack } from "./indent-stack.ts";
import { parseCarbon } from "./jest.ts";
import { findSummary } from "./summary.ts";

const MOCHA_VERSIONS: readonly unknown[] = ["9.5", "10.0", "10.2"];

export function parseLighthouse(log: string, { version }: ParserContext): StatusMap {
  if (MOCHA_VERSIONS.includes(version)) return parseMocha(log);
  return toFloat(version) >= 3 ? parseCarbon(log) : parseJsonReports(log);
}

const RUN_START = new Pattern("running\\s\\d+\\stest\\sfiles");
const RUN_END = new Pattern("\\d+\\spassing");
const MARKED = { timed: new Pattern("✔\\s(.*)\\s\\(\\d+m+s\\)"), plain: new Pattern("✔\\s(.*)"), status: "PASSED" } as const;
const NUMBERED = { timed: new Pattern("\\d+\\)\\s(.*)\\s\\(\\d+m+s\\)"), plain: new Pattern("\\d+\\)\\s(.*)"), status: "FAILED" } as const;

function parseMocha(log: string): StatusMap {
  const map = newStatusMap();
  for (const piece of RUN_START.split(log).slice(1)) {
    const end = findSummary(piece, RUN_END) ?? piece.length;
    const stack = new IndentStack();
    for (const line of strip(piece.slice(0, end)).split("\n")) {
      const result = mochaResult(strip(line));
      if (result === null) stack.add(line);
      else map.set(stack.nameOf(result.name), result.status);
    }
  }
  return map;
}

function mochaResult(text: string): { readonly name: string; readonly status: string } | null {
  const isMarked = text.startsWith("✔");
  if (!isMarked && !text.includes(")")) return null;
  const { timed, plain, status } = isMarked ? MARKED : NUMBERED;
  const found = (text.includes("ms)") ? timed.match(text) : null) ?? plain.match(text);
  return found === null ? null : { name: found[1] ?? "", status };
}

const TITLE = new Pattern('"fullTitle":\\s"(.*)",\\n');

function parseJsonReports(log: string): StatusMap {
  const map = newStatusMap();
  for (const piece of cutTail(log, "./node_modules/.bin/mocha --reporter json")) {
    const passes = beforeLast(afterLast(piece, '"passes": ['), "]");
    for (const [, title = ""] of TITLE.findAll(passes)) map.set(title, "PASSED");
    const failures = beforeLast(afterLast(piece, '"failures": ['), "],");
    for (const [, title = ""] of TITLE.findAll(failures)) map.set(title, "FAILED");
  }
  return map;
}
