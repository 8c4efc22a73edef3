import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  byInstance,
  END_MARKER,
  gradeOutput,
  makeRunReport,
  makeSpec,
  RunFolder,
  readPredictions,
  readRowsFile,
  START_MARKER,
  writeInstanceReport,
  writeRunReport,
} from "@aenv/swebench/core";
import { describeNeeding, swebenchPythonPath, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";

const RUN = "run-1";
const MODEL = "lab/model";

interface PlainRow {
  readonly instance_id: string;
  readonly FAIL_TO_PASS: readonly string[];
  readonly PASS_TO_PASS: readonly string[];
}

/** A row of the example dataset whose tests are run by pytest. */
const path = join(import.meta.dirname, "../../environments/swebench/examples/rows.jsonl");
const rows = readFileSync(path, "utf8").trim().split("\n");
const row = rows.map((line) => JSON.parse(line) as PlainRow).find(({ instance_id }) => instance_id.includes("ledger")) as PlainRow;

const printed = (failing: readonly string[]) =>
  [...row.FAIL_TO_PASS, ...row.PASS_TO_PASS].map((test) => `${failing.includes(test) ? "FAILED" : "PASSED"} ${test}`).join("\n");
const between = (text: string) => `+ pytest\n${START_MARKER}\n${text}\n${END_MARKER}\n`;

/** What the tests of each instance print; null if it was not run. */
const outputs: Readonly<Record<string, string | null>> = {
  "example__all-pass": between(printed([])),
  "example__one-fails": between(printed([row.FAIL_TO_PASS[0] as string])),
  "example__one-breaks": between(printed([row.PASS_TO_PASS[0] as string])),
  "example__none-run": between(""),
  "example__no-memory": "bash: fork: Cannot allocate memory\n",
  "example__not-run": null,
};

describeNeeding("swebench", "the reference of SWE-bench", () => {
  it("reads the files of a run, and reports and grades it as this implementation does", { timeout: 60_000 }, async () => {
    using tree = temporaryTree();
    const patched = Object.keys(outputs).map((instance_id) => ({ instance_id, model_name_or_path: MODEL, model_patch: "diff" }));
    const written = [...patched, { instance_id: "example__empty", model_name_or_path: MODEL, model_patch: "" }];
    const dataset = [...Object.keys(outputs), "example__empty", "example__absent"].map((instance_id) => ({ ...row, instance_id }));
    writeFileSync(join(tree.path, "predictions.json"), JSON.stringify(Object.fromEntries(written.map((one) => [one.instance_id, one]))));
    writeFileSync(join(tree.path, "dataset.json"), JSON.stringify(dataset));
    writeFileSync(join(tree.path, "dataset.jsonl"), dataset.map((one) => `${JSON.stringify(one)}\n`).join(""));

    const run = new RunFolder(tree.path, RUN);
    const reports: Record<string, unknown> = {};
    for (const rowRead of await readRowsFile(join(tree.path, "dataset.jsonl"))) {
      const spec = makeSpec(rowRead);
      const output = outputs[spec.instanceId] ?? null;
      if (output === null) continue;
      const grade = gradeOutput(spec, "diff", new TextEncoder().encode(output));
      run.keep(MODEL, spec.instanceId, "diff", { script: spec.evalScript, output, grade, error: null, log: "" });
      Object.assign(reports, JSON.parse(writeInstanceReport(spec.instanceId, grade.report)));
    }
    const predictions = byInstance(readPredictions(JSON.stringify(written), "json"));
    const report = makeRunReport({ instanceIds: dataset.map(({ instance_id }) => instance_id), predictions, read: run.read });

    const script = join(import.meta.dirname, "read_run.py");
    const { stdout } = await promisify(execFile)(swebenchPythonPath, [script, tree.path, RUN], {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    const theirs = JSON.parse(stdout);
    expect(theirs.report).toEqual(JSON.parse(writeRunReport(report)));
    expect(theirs.graded).toEqual(reports);
    expect(theirs.report).toMatchObject({
      resolved_ids: ["example__all-pass"],
      incomplete_ids: ["example__absent"],
      empty_patch_ids: ["example__empty"],
      error_ids: ["example__not-run"],
      infra_failure_ids: ["example__no-memory"],
    });
  });
});
