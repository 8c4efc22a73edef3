/** The results of one test file in one run. */
export interface FileResult {
  readonly file: string;
  readonly passed: readonly string[];
  readonly skipped: readonly string[];
  /** Tests that failed, and failures of the file outside a test. */
  readonly failed: readonly string[];
  readonly seconds: number;
  /** Processor time of the file and of the programs that it waited for. */
  readonly processorSeconds: number;
}

/** What one run of the tests wrote. */
export interface RunResult {
  readonly files: readonly FileResult[];
  /** Failures that belong to no file, such as an unhandled rejection after the last test. */
  readonly outside: number;
  /** How it differs from the usual run, such as "with 2 workers". Its files count beside those of other runs. */
  readonly variant?: string;
}

/** The result of several runs: of each file, the last one counts. */
export interface Total {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Tests that failed in a run and passed in a later one. */
  readonly passedLater: readonly string[];
}

export function totalOf(runs: readonly RunResult[]): Total {
  const last = new Map<string, FileResult>();
  const failedOnce = new Set<string>();
  for (const { files, variant } of runs) {
    for (const result of files) {
      const file = variant === undefined ? result.file : `${result.file} (${variant})`;
      last.set(file, result);
      for (const test of result.failed) failedOnce.add(`${file} > ${test}`);
    }
  }
  const results = [...last.values()];
  const count = (state: "passed" | "failed" | "skipped") => results.reduce((sum, result) => sum + result[state].length, 0);
  const stillFailed = new Set([...last].flatMap(([file, { failed }]) => failed.map((test) => `${file} > ${test}`)));
  return {
    passed: count("passed"),
    failed: count("failed") + runs.reduce((sum, { outside }) => sum + outside, 0),
    skipped: count("skipped"),
    passedLater: [...failedOnce].filter((test) => !stillFailed.has(test)),
  };
}

/**
 * The files to run once more, alone. None if a second attempt cannot make the run pass, or if so many failed that a busy machine
 * does not explain it.
 */
export function filesToRepeat({ files, outside }: RunResult, limit: number): string[] {
  const failed = files.filter((result) => result.failed.length > 0).map(({ file }) => file);
  return outside > 0 || failed.length > limit ? [] : failed;
}
