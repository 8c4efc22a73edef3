import { describe, expect, it } from "vitest";
import { type FileResult, filesToRepeat, type RunResult, totalOf } from "./results.ts";

const run = (...files: Partial<FileResult>[]): RunResult => ({
  files: files.map((result) => ({ file: "a.test.ts", passed: [], skipped: [], failed: [], seconds: 0, processorSeconds: 0, ...result })),
  outside: 0,
});

describe("the total of several runs", () => {
  it("counts each file once, as it ended last", () => {
    const first = run({ passed: ["one"], failed: ["two"] }, { file: "b.test.ts", skipped: ["three"] });
    const second = run({ passed: ["one", "two"] });
    const third = run({ file: "b.test.ts", passed: ["three"] });
    expect(totalOf([first, second, third])).toEqual({ passed: 3, failed: 0, skipped: 0, passedLater: ["a.test.ts > two"] });
  });

  it("counts a file once more for each variant of it, also if another one passed later", () => {
    const usual = run({ passed: ["one", "two"] });
    const varied = { ...run({ passed: ["one"], failed: ["two"] }), variant: "with 2 workers" };
    expect(totalOf([varied, usual])).toEqual({ passed: 3, failed: 1, skipped: 0, passedLater: [] });
    const again = { ...varied, ...run({ passed: ["one", "two"] }) };
    expect(totalOf([varied, again, usual])).toMatchObject({ passed: 4, failed: 0, passedLater: ["a.test.ts (with 2 workers) > two"] });
  });

  it("keeps what failed in the last run, and failures that belong to no file", () => {
    const first = run({ passed: ["one"], failed: ["two"] });
    expect(totalOf([first, first])).toMatchObject({ failed: 1, passedLater: [] });
    expect(totalOf([{ ...first, outside: 1 }, run({ passed: ["one", "two"] })])).toMatchObject({ failed: 1 });
  });
});

describe("the files to repeat", () => {
  const failing = run({ failed: ["one", "two"] }, { file: "b.test.ts", passed: ["three"] });

  it("are those with a failure", () => {
    expect(filesToRepeat(failing, 1)).toEqual(["a.test.ts"]);
  });

  it("are none if too many failed, or if something failed outside of them", () => {
    expect(filesToRepeat(failing, 0)).toEqual([]);
    expect(filesToRepeat({ ...failing, outside: 1 }, 5)).toEqual([]);
  });
});
