import type { Reporter, SerializedError, TestModule, TestSuite } from "vitest/node";
import type { MissingComponent } from "./needs.ts";

/** The result of a run in numbers, and the missing components. */
interface Summary {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly missing: readonly SkippedFor[];
}

/** One missing component and the number of tests that were skipped for it. */
interface SkippedFor extends MissingComponent {
  readonly tests: number;
}

/** Prints the missing components at the end of a run, how to get them, and one line of counts. */
export default class NeedsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], outside: readonly SerializedError[]): void {
    process.stdout.write(format(summarize(modules, outside.length)));
  }
}

/** A failure outside a test (a file that does not load, a hook, an unhandled rejection) counts as a failure too. */
function summarize(modules: readonly TestModule[], errorsOutside: number): Summary {
  const counts = { passed: 0, failed: errorsOutside, skipped: 0 };
  const missing = new Map<string, SkippedFor>();
  for (const module of modules) {
    if (module.errors().length > 0) counts.failed += 1;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state !== "pending") counts[state] += 1;
    }
    for (const suite of module.children.allSuites()) {
      if (suite.errors().length > 0) counts.failed += 1;
      note(missing, suite);
    }
  }
  return { ...counts, missing: [...missing.values()] };
}

function note(missing: Map<string, SkippedFor>, suite: TestSuite): void {
  const found = suite.meta().missing;
  // A suite inside a skipped one has the same information; only the outermost is counted.
  if (found === undefined || (suite.parent.type === "suite" && suite.parent.meta().missing !== undefined)) return;
  const before = missing.get(found.component)?.tests ?? 0;
  missing.set(found.component, { ...found, tests: before + [...suite.children.allTests()].length });
}

function format({ passed, failed, skipped, missing }: Summary): string {
  const lines: string[] = [];
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
