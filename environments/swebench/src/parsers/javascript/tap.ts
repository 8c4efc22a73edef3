import { Pattern } from "../../python/pattern.ts";
import { byWord, parseLines } from "../line-results.ts";
import type { StatusMap } from "../parser.ts";

const LINE = new Pattern("(ok|not ok) (\\d+) (.+)$");
const read = byWord(1, 3, { ok: "PASSED", "not ok": "FAILED" });

export function parseTap(log: string): StatusMap {
  return parseLines(log, ["ok "], LINE, read);
}
