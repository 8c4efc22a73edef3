import { strip } from "@aenv/benchmark";
import type { Pattern } from "../python/pattern.ts";
import { eachLineWith } from "./lines.ts";
import type { Status, StatusMap } from "./parser.ts";
import { newStatusMap } from "./status-map.ts";

/** Test and status of a match; null ignores the line. */
export type ReadMatch = (match: RegExpExecArray) => readonly [test: string, status: Status] | null;

/**
 * Results that are on one line each. Lines without one of the texts in `needs`, of which every match has one, are skipped without
 * running the pattern.
 */
export function parseLines(log: string, needs: readonly string[], pattern: Pattern, read: ReadMatch): StatusMap {
  const map = newStatusMap();
  eachLineWith(log, needs, (line) => {
    const match = pattern.match(strip(line));
    const result = match === null ? null : read(match);
    if (result !== null) map.set(result[0], result[1]);
  });
  return map;
}

/** Group `word` decides the status by a table, group `name` is the test. */
export function byWord(word: number, name: number, statuses: Readonly<Record<string, Status>>): ReadMatch {
  const byWord = new Map(Object.entries(statuses));
  return (match) => {
    const status = byWord.get(match[word] ?? "");
    return status === undefined ? null : [match[name] ?? "", status];
  };
}
