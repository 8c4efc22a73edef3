// repeat RESULTS: prints the test files to run once more, alone.
// total RESULTS...: prints the tests that passed only later, and the counts of all runs. Fails if a test failed.
import { readFileSync } from "node:fs";
import { filesToRepeat, type RunResult, totalOf } from "./results.ts";

/** More failed files are not explained by a busy machine. */
const REPEATED_FILES = 3;

const [task, ...paths] = process.argv.slice(2);
const runs = paths.map((path): RunResult => JSON.parse(readFileSync(path, "utf8")));

if (task === "repeat") {
  process.stdout.write(runs.flatMap((run) => filesToRepeat(run, REPEATED_FILES)).join("\n"));
} else {
  const { passed, failed, skipped, passedLater } = totalOf(runs);
  const later = passedLater.length === 0 ? [] : ["Passed only at the second attempt:", ...passedLater.map((test) => `  ${test}`), ""];
  process.stdout.write([...later, `${passed} passed, ${failed} failed, ${skipped} skipped`, ""].join("\n"));
  process.exitCode = failed === 0 ? 0 : 1;
}
