import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { parquetWriteBuffer } from "hyparquet-writer";
import { describe, expect, it } from "vitest";
import { makeSpec } from "../spec/spec.ts";
import { completeRow } from "./legacy/row.ts";
import { loadDataset, selectRows } from "./load.ts";
import { datasetName } from "./names.ts";
import { instanceIdOf, type Row, toJson } from "./row.ts";
import { checkTaskRepo } from "./task-repo/check.ts";

const SCRIPT = "#!/bin/bash\n: '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n";

function columns(id: string) {
  return {
    instance_id: id,
    repo: "a/b",
    version: "1.0",
    image: "image",
    log_parser: "parse_log_pytest",
    eval_type: "pass_and_fail",
    eval_script: SCRIPT,
    FAIL_TO_PASS: ["t::1"],
    PASS_TO_PASS: '["t::2"]',
  };
}

const idsOf = (rows: readonly Row[]): string[] => rows.map(instanceIdOf);
const row = (value: object): Row => toJson(value) as Row;

describe("a dataset", () => {
  it("is a JSON list, JSON lines, or Parquet, with the same rows", async () => {
    const all = [columns("a__b-2"), columns("a__b-1")];
    using tree = temporaryTree({ "d.json": JSON.stringify(all), "d.jsonl": `${all.map((one) => JSON.stringify(one)).join("\r\n")}\n` });
    const columnData = Object.keys(all[0] ?? {}).map((name) => ({ name, data: all.map((one) => one[name as keyof typeof one]) }));
    writeFileSync(join(tree.path, "d.parquet"), Buffer.from(parquetWriteBuffer({ columnData })));
    mkdirSync(join(tree.path, "hub"));
    writeFileSync(join(tree.path, "hub/dev.parquet"), Buffer.from(parquetWriteBuffer({ columnData, codec: "SNAPPY" })));
    const loaded = await Promise.all(["d.json", "d.jsonl", "d.parquet"].map((file) => loadDataset(join(tree.path, file))));
    loaded.push(await loadDataset(join(tree.path, "hub"), { split: "dev" }));
    for (const rows of loaded) {
      expect(idsOf(rows)).toEqual(["a__b-2", "a__b-1"]);
      expect(rows.map((one) => [makeSpec(one).failToPass, makeSpec(one).passToPass])).toEqual([
        [["t::1"], ["t::2"]],
        [["t::1"], ["t::2"]],
      ]);
    }
  });

  it("raises for an empty line in the middle", async () => {
    using tree = temporaryTree({ "d.jsonl": `${JSON.stringify(columns("a"))}\n\n${JSON.stringify(columns("b"))}` });
    await expect(loadDataset(join(tree.path, "d.jsonl"))).rejects.toThrow("invalid JSON");
  });

  it("is filtered by ids, in its own order", () => {
    const rows = ["a", "b", "c"].map((id) => row({ instance_id: id }));
    expect(idsOf(selectRows(rows, ["c", "a"]))).toEqual(["a", "c"]);
    expect(idsOf(selectRows(rows, []))).toEqual(["a", "b", "c"]);
    expect(() => selectRows(rows, ["x", "a", "y"])).toThrow("Some instance IDs not found in dataset!\nMissing IDs:\nx y");
  });

  it("that is not here says what can be named", async () => {
    using tree = temporaryTree({ "saved/test/dataset_info.json": "{}" });
    await expect(loadDataset(join(tree.path, "none"))).rejects.toThrow("datasets are not downloaded");
    await expect(loadDataset(join(tree.path, "saved"))).rejects.toThrow("to_parquet");
  });

  it("has short names", () => {
    expect(["Lite", " Verified ", "SWE-bench", "full", "other/x", "constructor"].map(datasetName)).toEqual([
      "SWE-bench/SWE-bench_Lite",
      "SWE-bench/SWE-bench_Verified",
      "SWE-bench/SWE-bench",
      "SWE-bench/SWE-bench",
      "other/x",
      "constructor",
    ]);
  });
});

describe("a task repository", () => {
  const task = (id: string, split: string, extra = "") => ({
    [`tasks/${id}/task.yaml`]: `instance_id: ${id}\nrepo: a/b\nversion: '1.0'\nbase_commit: abc\nsplit: ${split}\nimage: swebench/sweb.eval.x86_64.${id.replaceAll("__", "_1776_")}:latest\nlog_parser: parse_log_pytest\neval_type: pass_and_fail\ndatasets: [x/y]\n${extra}`,
    [`tasks/${id}/tests.json`]: '{"FAIL_TO_PASS": ["t"], "PASS_TO_PASS": []}',
    [`tasks/${id}/problem_statement.md`]: "fix\r\nit",
    [`tasks/${id}/gold.patch`]: "diff --git a/x b/x\n",
    [`tasks/${id}/test.patch`]: "",
    [`tasks/${id}/eval.sh`]: SCRIPT,
    [`tasks/${id}/Dockerfile`]: "FROM scratch\n",
  });
  const files = {
    "sweb.yaml": "datasets: [x/y]\nsplits: [test, dev]\n",
    ...task("a__b-2", "test"),
    ...task("a__b-10", "test"),
    ...task("a__b-3", "dev"),
    "tasks/notes/readme.md": "not a task",
  };

  it("has the rows of a split, sorted, or those that are named, in their order", async () => {
    using tree = temporaryTree(files);
    expect(idsOf(await loadDataset(tree.path))).toEqual(["a__b-10", "a__b-2"]);
    const named = await loadDataset(tree.path, { instanceIds: ["a__b-3", "a__b-10"] });
    expect(idsOf(named)).toEqual(["a__b-3", "a__b-10"]);
    expect([named[0]?.get("problem_statement"), named[0]?.get("hints_text"), named[0]?.get("version")]).toEqual(["fix\r\nit", "", "1.0"]);
    await expect(loadDataset(tree.path, { instanceIds: ["x"] })).rejects.toThrow("has no tasks x");
    await expect(loadDataset(tree.path, { split: "train" })).rejects.toThrow("its splits are: dev, test");
  });

  it("is checked", () => {
    using good = temporaryTree(files);
    expect(checkTaskRepo(good.path)).toEqual([]);
    using bad = temporaryTree({
      ...files,
      "tasks/a__b-2/eval.sh": "pytest",
      "tasks/a__b-2/tests.json": '{"FAIL_TO_PASS": [], "PASS_TO_PASS": [1]}',
      "tasks/a__b-2/test.patch": "x",
      "tasks/a__b-3/task.yaml": "instance_id: other\nsplit: train\ndatasets: [z]\n",
    });
    expect(checkTaskRepo(bad.path).map(({ task: id, problem }) => `${id}: ${problem}`)).toEqual([
      "a__b-2: FAIL_TO_PASS is empty",
      "a__b-2: PASS_TO_PASS in tests.json is not a list of strings",
      "a__b-2: eval.sh does not print '>>>>> Start Test Output'",
      "a__b-2: eval.sh does not print '>>>>> End Test Output'",
      "a__b-2: test.patch is not a patch of git",
      ...["repo", "version", "base_commit", "image", "log_parser", "eval_type"].map((key) => `a__b-3: task.yaml has no '${key}'`),
      "a__b-3: instance_id is 'other', but the folder is 'a__b-3'",
      "a__b-3: the split 'train' is not in sweb.yaml",
      "a__b-3: the dataset 'z' is not in sweb.yaml",
    ]);
  });
});

describe("a row of release 4", () => {
  const testPatch = "diff --git a/tests/old.py b/tests/app/test_x.py\n--- a\n+++ b\ndiff --git a/tests/d.json b/tests/d.json\n";
  const legacy = {
    instance_id: "django__django-1",
    repo: "django/django",
    version: "3.1",
    base_commit: "abc",
    test_patch: testPatch,
  };

  it("gets image, parser, mode and script", () => {
    const complete = completeRow(row(legacy));
    expect(complete.get("image")).toBe("swebench/sweb.eval.x86_64.django_1776_django-1:latest");
    expect([complete.get("log_parser"), complete.get("eval_type")]).toEqual(["parse_log_django", "pass_and_fail"]);
    expect([complete.get("FAIL_TO_PASS"), complete.get("PASS_TO_PASS")]).toEqual([[], []]);
    expect(complete.get("eval_script")).toBe(`#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen
export LANG=en_US.UTF-8
export LANGUAGE=en_US:en
export LC_ALL=en_US.UTF-8
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff abc
source /opt/miniconda3/bin/activate
conda activate testbed
python -m pip install -e .
git checkout abc tests/app/test_x.py tests/d.json
git apply -v - <<'EOF_114329324912'
${testPatch}
EOF_114329324912
: '>>>>> Start Test Output'
./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 app.test_x
: '>>>>> End Test Output'
git checkout abc tests/app/test_x.py tests/d.json
`);
  });

  it("of another language needs a script, which may be in the column `script`", () => {
    const other = { ...legacy, instance_id: "chartjs__Chart.js-1", repo: "chartjs/Chart.js" };
    expect(() => completeRow(row(other))).toThrow("use rows of release 5");
    const complete = completeRow(row({ ...other, script: SCRIPT }));
    expect([complete.get("eval_script"), complete.get("eval_type")]).toEqual([SCRIPT, "fail_only"]);
  });

  it("of an unknown repository is refused", () => {
    expect(() => completeRow(row({ ...legacy, repo: "dbt-labs/dbt-core" }))).toThrow("none is known for dbt-labs/dbt-core");
  });

  it("of release 5 stays as it is", () => {
    const given = row(columns("a__b-1"));
    expect(completeRow(given)).toBe(given);
  });
});
