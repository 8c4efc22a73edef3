import { parseFloatText } from "../../python/numbers.ts";
import { Pattern } from "../../python/pattern.ts";
import { afterLast, beforeLast, cutTail, strip } from "../../python/text.ts";
import type { ParserContext, StatusMap } from "../parser.ts";
import { IndentStack } from "./indent-stack.ts";
import { parseCarbon } from "./jest.ts";

const MOCHA_VERSIONS: readonly unknown[] = ["9.5", "10.0", "10.2"];

export function parseLighthouse(log: string, { version }: ParserContext): StatusMap {
  if (MOCHA_VERSIONS.includes(version)) return parseMocha(log);
  return parseFloatText(version) >= 3 ? parseCarbon(log) : parseJsonReports(log);
}

const RUN_START = new Pattern("running\\s\\d+\\stest\\sfiles");
const RUN_END = new Pattern("\\d+\\spassing");
const MOCHA_RESULTS = [
  { pattern: new Pattern("✔\\s(.*)\\s\\(\\d+m+s\\)"), status: "PASSED" },
  { pattern: new Pattern("✔\\s(.*)"), status: "PASSED" },
  { pattern: new Pattern("\\d+\\)\\s(.*)\\s\\(\\d+m+s\\)"), status: "FAILED" },
  { pattern: new Pattern("\\d+\\)\\s(.*)"), status: "FAILED" },
] as const;
const FAILURE_START = new Pattern("\\d+\\)");

function parseMocha(log: string): StatusMap {
  const map: StatusMap = new Map();
  for (const piece of RUN_START.split(log).slice(1)) {
    const end = RUN_END.search(piece)?.index ?? piece.length;
    const stack = new IndentStack();
    for (const line of strip(piece.slice(0, end)).split("\n")) {
      const result = mochaResult(strip(line));
      if (result === null) stack.add(line);
      else map.set([...stack.names, result.name].join(" - "), result.status);
    }
  }
  return map;
}

function mochaResult(text: string): { readonly name: string; readonly status: string } | null {
  const isMarked = text.startsWith("✔");
  if (!isMarked && FAILURE_START.match(text) === null) return null;
  for (const { pattern, status } of MOCHA_RESULTS) {
    if (isMarked !== (status === "PASSED")) continue;
    const found = pattern.match(text);
    if (found !== null) return { name: found[1] ?? "", status };
  }
  return null;
}

const TITLE = new Pattern('"fullTitle":\\s"(.*)",\\n');

function parseJsonReports(log: string): StatusMap {
  const map: StatusMap = new Map();
  for (const piece of cutTail(log, "./node_modules/.bin/mocha --reporter json")) {
    const passes = beforeLast(afterLast(piece, '"passes": ['), "]");
    for (const [, title = ""] of TITLE.findAll(passes)) map.set(title, "PASSED");
    const failures = beforeLast(afterLast(piece, '"failures": ['), "],");
    for (const [, title = ""] of TITLE.findAll(failures)) map.set(title, "FAILED");
  }
  return map;
}
