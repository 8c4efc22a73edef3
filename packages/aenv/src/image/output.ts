import { stripVTControlCharacters } from "node:util";

const LAST_LINES = 5;
/** BuildKit names the step that failed before it prints the end of its output, lines of the Dockerfile and the error. */
const FAILED_STEP = /^ > \[/;

/** The end of what a builder printed before it failed, with the step that failed. */
export function endOf(output: string): string {
  // The classic builder prints the errors of programs in colour.
  const lines = stripVTControlCharacters(output).trimEnd().split(/\r?\n/);
  const step = lines.findLastIndex((line) => FAILED_STEP.test(line));
  return lines
    .slice(step === -1 ? -LAST_LINES : step)
    .join("\n")
    .trim();
}
