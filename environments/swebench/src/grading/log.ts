import { isZero } from "@aenv/benchmark";
import type { LogParser, ParserContext, StatusMap } from "../parsers/parser.ts";
import { Pattern } from "../python/pattern.ts";
import { END_MARKER, EXIT_CODE_MARKER, START_MARKER } from "../spec/markers.ts";

/** What a log says. `hasRun` is false if the tests gave no result that can be trusted; the map is then empty. */
export interface LogResult {
  readonly map: StatusMap;
  readonly hasRun: boolean;
}

const BROKEN = [">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out"] as const;

/** Summaries that a test runner writes after it has run at least one test. */
const SUITE_RAN = new Pattern(
  [
    "Executed [1-9]\\d* of \\d+",
    "TOTAL: [1-9]\\d* (?:SUCCESS|FAILED)",
    "[1-9]\\d* passing",
    "Tests:\\s+[1-9]\\d*",
    "Test Suites:\\s+(?:\\d+ \\w+, )*[1-9]\\d* total",
    "^# tests [1-9]\\d*",
    "[1-9]\\d* specs?, \\d+ failures?",
    "': ok$",
  ].join("|"),
  "M",
);
const EXIT_CODE = new Pattern(`${EXIT_CODE_MARKER}\\s*(-?\\d+)`);

/** Reads a log whose line ends are `\n`. Throws a `PyError` if the parser raises. */
export function readTestLog(log: string, parse: LogParser, context: ParserContext): LogResult {
  const nothing: LogResult = { map: new Map(), hasRun: false };
  if (BROKEN.some((text) => log.includes(text)) || !log.includes(START_MARKER) || !log.includes(END_MARKER)) return nothing;
  const ofTests = parse(testOutput(log), context);
  const map = ofTests.size > 0 ? ofTests : parse(log, context);
  if (map.size === 0 && SUITE_RAN.search(log) === null) return nothing;
  // A log of successes only, of tests that failed, is not believed: a patch could have printed it.
  const code = EXIT_CODE.search(log)?.[1];
  if (code !== undefined && !isZero(code) && map.size > 0 && !hasFailure(map)) return nothing;
  return { map, hasRun: true };
}

/** Between the first start marker and the next marker of either kind. */
function testOutput(log: string): string {
  const output = log.split(START_MARKER)[1] ?? "";
  return output.split(END_MARKER)[0] ?? "";
}

function hasFailure(map: StatusMap): boolean {
  for (const status of map.values()) if (status === "FAILED" || status === "ERROR") return true;
  return false;
}
