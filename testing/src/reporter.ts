import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule, TestSuite, Vitest } from "vitest/node";
import type { MissingComponent } from "./needs.ts";
import { type FileResult, type RunResult, totalOf } from "./results.ts";

/** The result of a run in numbers, and the missing components. */
interface Summary {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly missing: readonly SkippedFor[];
  readonly slowest: readonly FileResult[];
}

/** Shorter files are not worth listing. */
const SLOW_SECONDS = 30;
const SLOW_FILES = 30;

/** One missing component and the number of tests that were skipped for it. */
interface SkippedFor extends MissingComponent {
  readonly tests: number;
}

/**
 * Prints the slowest files at the end of a run, the missing components and how to get them, and one line of counts.
 * Writes the results of all tests to the file that AENV_TEST_RESULTS names, if it is set.
 */
export default class NeedsReporter implements Reporter {
  #isSelection = false;

  onInit({ config }: Vitest): void {
    this.#isSelection = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], outside: readonly SerializedError[]): void {
    // Tests that were not selected by name are reported as skipped.
    const files = modules.map(resultOf).map((one) => (this.#isSelection ? { ...one, skipped: [] } : one));
    const variant = variantOf(process.env);
    const result: RunResult = { files, outside: outside.length, ...(variant !== undefined && { variant }) };
    const file = process.env.AENV_TEST_RESULTS;
    if (file !== undefined) writeFileSync(file, JSON.stringify(result));
    process.stdout.write(format(summarize(modules, result)));
  }
}

function variantOf({ AENV_TEST_WORKERS: workers, AENV_MEMORY_MINUTES: minutes }: NodeJS.ProcessEnv): string | undefined {
  if (workers !== undefined) return `with ${workers} workers`;
  return minutes === undefined ? undefined : `for ${minutes} minutes`;
}

/** A failure outside a test (a file that does not load, a hook) counts as a failure too. */
function resultOf(module: TestModule): FileResult {
  const found = { passed: [] as string[], failed: [] as string[], skipped: [] as string[] };
  if (module.errors().length > 0) found.failed.push("(the file itself)");
  for (const suite of module.children.allSuites()) if (suite.errors().length > 0) found.failed.push(`${suite.fullName} (its hooks)`);
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state !== "pending") found[state].push(test.fullName);
  }
  const seconds = module.diagnostic().duration / 1000;
  return { file: module.relativeModuleId, ...found, seconds, processorSeconds: module.meta().processorSeconds ?? 0 };
}

function summarize(modules: readonly TestModule[], result: RunResult): Summary {
  const missing = new Map<string, SkippedFor>();
  for (const module of modules) for (const suite of module.children.allSuites()) note(missing, suite);
  const { passed, failed, skipped } = totalOf([result]);
  return { passed, failed, skipped, missing: [...missing.values()], slowest: slowestOf(result.files) };
}

function slowestOf(files: readonly FileResult[]): FileResult[] {
  return files
    .filter(({ seconds }) => seconds >= SLOW_SECONDS)
    .sort((one, other) => other.seconds - one.seconds)
    .slice(0, SLOW_FILES);
}

function formatCost({ file, seconds, processorSeconds }: FileResult): string {
  return `  ${seconds.toFixed(0).padStart(4)} s (${processorSeconds.toFixed(0).padStart(4)} s)  ${file}`;
}

function note(missing: Map<string, SkippedFor>, suite: TestSuite): void {
  const found = suite.meta().missing;
  // A suite inside a skipped one has the same information; only the outermost is counted.
  if (found === undefined || (suite.parent.type === "suite" && suite.parent.meta().missing !== undefined)) return;
  const before = missing.get(found.component)?.tests ?? 0;
  missing.set(found.component, { ...found, tests: before + [...suite.children.allTests()].length });
}

function format({ passed, failed, skipped, missing, slowest }: Summary): string {
  const lines: string[] = [];
  if (slowest.length > 0) lines.push("Slowest files (processor time):", ...slowest.map(formatCost), "");
  if (missing.length > 0) {
    lines.push("Not on this machine:");
    for (const { component, reason, get, tests } of missing) {
      lines.push(`  ${component}: ${reason}; ${tests} ${tests === 1 ? "test" : "tests"} skipped`, `    to get it: ${get}`);
    }
    lines.push("With AENV_REQUIRE=all, what is missing fails instead.", "");
  }
  lines.push(`${passed} passed, ${failed} failed, ${skipped} skipped`, "");
  return `\n${lines.join("\n")}`;
}
