import { firstWord, SPACES, splitLines, strip } from "@aenv/benchmark";

export const PARSERS = ["pytest", "swebench", "swelancer", "mlebench", "sweperf"] as const;
export type ParserName = (typeof PARSERS)[number];

/** Results by the names of tests, in order. */
export type TestResults = ReadonlyMap<string, "passed" | "failed">;

/** Python matches these letters without regard to case: `ſ` is an s, `İ` and `ı` are an i. */
const HEADING_TEXT = [..."short test summary info"]
  .map((letter) => (letter === " " ? " " : `[${letter}${letter.toUpperCase()}${letter === "s" ? "ſ" : letter === "i" ? "İı" : ""}]`))
  .join("");
const HEADING = new RegExp(`=+[${SPACES}]*${HEADING_TEXT}[${SPACES}]*=+`);

const STATUS: Readonly<Record<string, "passed" | "failed">> = {
  PASSED: "passed",
  XFAIL: "passed",
  SKIPPED: "passed",
  FAILED: "failed",
  XPASS: "failed",
  ERROR: "failed",
};

/** The results in a test log, or null if the log cannot be parsed. */
export function parseTestLog(parser: ParserName, log: string): TestResults | null {
  switch (parser) {
    case "pytest":
      return pytest(log);
    case "swebench":
      return marked(log, "SWEBench");
    case "sweperf":
      return marked(log, "SWE-Perf");
    case "mlebench":
      return single("tests", strip(between(log, "MLEBench")) === "ALL TESTS PASSED");
    case "swelancer":
      return single("swelancer_task", isSwelancerSuccess(log.toLowerCase()));
  }
}

/** Whether all tests passed. An empty map is not a success; the reference takes it for one. */
export function isResolved(results: TestResults): boolean {
  return results.size > 0 && [...results.values()].every((result) => result === "passed");
}

/** The log of a command as text that can be parsed: LF, without terminal sequences. */
export function plainLog(output: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal sequences start with ESC.
  return output.replace(/\r\n?/g, "\n").replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, "");
}

function pytest(log: string): TestResults | null {
  const heading = HEADING.exec(log);
  if (heading === null) return null;
  const results = new Map<string, "passed" | "failed">();
  for (const line of splitLines(log.slice(heading.index + heading[0].length))) {
    const parsed = pytestLine(line);
    if (parsed !== null) results.set(parsed.name, parsed.result);
  }
  return results;
}

function pytestLine(line: string): { readonly name: string; readonly result: "passed" | "failed" } | null {
  // The message of a failure is cut at the last dash, even if the dash belongs to the name.
  const dash = line.startsWith("FAILED") ? line.lastIndexOf(" - ") : -1;
  const words = firstWord(dash < 0 ? line : line.slice(0, dash));
  if (words?.rest == null) return null;
  const word = words.word.replace(/^:+|:+$/g, "");
  const result = Object.hasOwn(STATUS, word) ? STATUS[word] : undefined;
  const id = strip(words.rest);
  const at = id.indexOf("::");
  const name = at < 0 ? id : id.slice(at + 2);
  return result === undefined || name === "" ? null : { name, result };
}

function marked(log: string, title: string): TestResults | null {
  const { start, end } = markers(title);
  return log.includes(start) && log.includes(end) ? single("tests", strip(between(log, title)) === "PASSED") : null;
}

/** The text after the first start and before the last end; a missing marker cuts nothing. */
function between(log: string, title: string): string {
  const { start, end } = markers(title);
  const startAt = log.indexOf(start);
  const rest = startAt < 0 ? log : log.slice(startAt + start.length);
  const endAt = rest.lastIndexOf(end);
  return endAt < 0 ? rest : rest.slice(0, endAt);
}

function markers(title: string): { readonly start: string; readonly end: string } {
  return { start: `${title} results starts here`, end: `${title} results ends here` };
}

function isSwelancerSuccess(log: string): boolean {
  if (log.includes("swe lancer success")) return true;
  if (log.includes("swe lancer failure")) return false;
  return log.includes("user_tool") && log.includes("completed");
}

function single(name: string, isPassed: boolean): TestResults {
  return new Map([[name, isPassed ? "passed" : "failed"]]);
}
