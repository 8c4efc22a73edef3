import { strip } from "@aenv/benchmark";
import { END_MARKER, EXIT_CODE_MARKER, START_MARKER } from "./markers.ts";

const SHEBANG = "#!/bin/bash";
// No `-e`: the script goes on after a failed test, to its last line, which restores the test files.
const OPTIONS = "set -uxo pipefail";

/** The script that is run, made from that of the row: with one head, and with the exit code of the tests in its output. */
export function buildEvalScript(rowScript: string): string {
  const lines = strip(rowScript)
    .split("\n")
    .filter((line) => line !== SHEBANG && line !== OPTIONS);
  return `${[SHEBANG, OPTIONS, ...captureExitCode(lines)].join("\n")}\n`;
}

function captureExitCode(lines: readonly string[]): readonly string[] {
  const end = lines.findIndex((line) => line.includes(END_MARKER));
  if (end < 0) return lines;
  return lines.toSpliced(end, 1, "SWEBENCH_TEST_EXIT_CODE=$?", lines[end] ?? "", `echo "${EXIT_CODE_MARKER} $SWEBENCH_TEST_EXIT_CODE"`);
}

/** The script with commands right before the tests; at its end if it does not mark their start. */
export function insertBeforeTests(script: string, commands: readonly string[]): string {
  if (commands.length === 0) return script;
  const lines = script.split("\n");
  const start = lines.findIndex((line) => line.includes(START_MARKER));
  if (start < 0) return `${script}\n${commands.join("\n")}`;
  return lines.toSpliced(start, 0, ...commands).join("\n");
}
