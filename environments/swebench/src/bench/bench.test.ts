import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { prepareData } from "../data/prepare.ts";
import { examples } from "../testing/example-rows.ts";
import { grading, imageSources, imagesOf, results } from "./index.ts";

const ids = ["aenv__cronline-3", "aenv__ledger-4", "aenv__routes-3"];
const run = { id: "r1", agent: "oracle", model: null, startedAt: new Date("2026-01-02T03:04:05Z") };
const PASSED = `+ : '>>>>> Start Test Output'
PASSED tests/test_amounts.py::test_x
+ : '>>>>> End Test Output'
>>>>> Test Exit Code: 0
`;

const episode = (taskId: string, files: Record<string, string>, more: object = {}) => ({
  taskId,
  sample: 0,
  outcome: { kind: "scored" },
  artifacts: new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])),
  prediction: null,
  ...more,
});

describe("the images of tasks", () => {
  it("are those of the rows, and are built where the dataset has Dockerfiles", async () => {
    using tree = temporaryTree({});
    const to = join(tree.path, "data");
    await prepareData({ from: examples, to });
    const images = await imagesOf(to);
    expect([...images.keys()]).toEqual(ids);
    expect(images.get("aenv__ledger-4")).toEqual(["swebench/sweb.eval.x86_64.aenv_1776_ledger-4:latest"]);
    expect(await imageSources(to, ["aenv__ledger-4"])).toEqual([
      { image: "swebench/sweb.eval.x86_64.aenv_1776_ledger-4:latest", context: join(to, "tasks/aenv__ledger-4") },
    ]);
    await prepareData({ from: join(examples, "rows.jsonl"), to });
    expect(await imageSources(to)).toEqual([]);
    await expect(imagesOf(to, ["x"])).rejects.toThrow("x");
  });
});

describe("answers", () => {
  const read = (predictions: string, taskIds?: string[]) =>
    grading.readPredictions({ dataFolder: examples, predictions, ...(taskIds && { taskIds }) });

  it("are patches of a file, or the solutions of the dataset", async () => {
    const gold = await read("gold");
    expect(gold.map(({ taskId, model, arguments: args }) => [taskId, model, args?.instance])).toEqual(ids.map((id) => [id, "gold", id]));
    const file = await read(join(examples, "predictions/gold.jsonl"), ["aenv__ledger-4"]);
    expect(file).toEqual(gold.filter(({ taskId }) => taskId === "aenv__ledger-4"));
    expect((await read(join(examples, "predictions/empty.jsonl"))).map((one) => one.arguments)).toEqual([null, null, null]);
  });

  it("are refused for instances that the dataset does not have, and in other files", async () => {
    using tree = temporaryTree({ "p.jsonl": '{"instance_id":"x","model_patch":"","model_name_or_path":"m"}\n', "p.txt": "" });
    await expect(read(join(tree.path, "p.jsonl"))).rejects.toThrow("Some prediction IDs not found in dataset!");
    await expect(read(join(tree.path, "p.txt"))).rejects.toThrow(".json or .jsonl");
  });
});

describe("the results of a run", () => {
  const write = async (folder: string) => {
    const files = await results({ dataFolder: examples, folder, run, taskIds: ids, samples: 1, concurrency: 1 });
    const report = (resolved: boolean) => JSON.stringify({ "aenv__ledger-4": { resolved } });
    await files.episode(
      episode("aenv__ledger-4", {
        "patch.diff": "diff",
        "report.json": report(true),
        "test_output.txt": PASSED,
        "run_instance.log": "log",
      }),
    );
    await files.episode(episode("aenv__ledger-4", { "patch.diff": "diff" }, { sample: 1 }));
    await files.episode(episode("aenv__cronline-3", { "patch.diff": "", "run_instance.log": "" }));
    await files.episode(episode("aenv__routes-3", {}, { outcome: { kind: "unscored" } }));
    return files.end();
  };
  const reportIn = (folder: string, id = "r1") => JSON.parse(readFileSync(join(folder, `oracle.${id}.json`), "utf8"));

  it("are the files of the reference, a run for each sample, and the same if they are written again", async () => {
    using tree = temporaryTree({});
    const { summary } = await write(tree.path);
    expect(Object.fromEntries(summary)).toMatchObject({ resolved: "1", errors: "1", "empty patches": "1", "not graded": "3" });
    expect(reportIn(tree.path)).toMatchObject({
      total_instances: 3,
      submitted_ids: ["aenv__cronline-3", "aenv__ledger-4"],
      resolved_ids: ["aenv__ledger-4"],
      empty_patch_ids: ["aenv__cronline-3"],
      incomplete_ids: ["aenv__routes-3"],
      schema_version: 2,
    });
    expect(reportIn(tree.path, "r1.2").error_ids).toEqual(["aenv__ledger-4"]);
    const logs = join(tree.path, "logs/run_evaluation/r1");
    expect(readdirSync(join(logs, "oracle/aenv__ledger-4")).sort()).toEqual([
      "patch.diff",
      "report.json",
      "run_instance.log",
      "test_output.txt",
    ]);
    expect(JSON.parse(readFileSync(join(logs, "run.json"), "utf8"))).toMatchObject({
      split: "test",
      created_at: "2026-01-02T03:04:05+00:00",
    });
    const read = () => readdirSync(tree.path, { recursive: true }).sort();
    const before = read();
    await write(tree.path);
    expect(read()).toEqual(before);
  });

  it("are graded anew from the stored output", async () => {
    using tree = temporaryTree({});
    await write(tree.path);
    const { summary } = await grading.regrade({ dataFolder: examples, folder: tree.path, run });
    expect(Object.fromEntries(summary)).toMatchObject({ resolved: "0", unresolved: "1", errors: "1" });
    expect(reportIn(tree.path)).toMatchObject({ total_instances: 3, unresolved_ids: ["aenv__ledger-4"] });
    using empty = temporaryTree({});
    await expect(grading.regrade({ dataFolder: examples, folder: empty.path, run })).rejects.toThrow("no results of swe-bench");
  });

  it("keep the verdict of output that was shortened, and the whole patch that was graded", async () => {
    using tree = temporaryTree({});
    const files = await results({ dataFolder: examples, folder: tree.path, run, taskIds: ids, samples: 1, concurrency: 1 });
    const stored = {
      "report.json": JSON.stringify({ "aenv__ledger-4": { resolved: true } }),
      "patch.diff": "[the patch of 9000000 bytes is too long to be kept]\n",
      "test_output.txt": `+ : '>>>>> Start\n[12 bytes are left out]\n>>>>> Test Exit Code: 0\n`,
    };
    const prediction = { model: "m", arguments: { model_patch: "diff --git a/x b/x\n" } };
    await files.episode(episode("aenv__ledger-4", stored, { prediction }));
    await files.end();
    const { summary } = await grading.regrade({ dataFolder: examples, folder: tree.path, run });
    expect(Object.fromEntries(summary)).toMatchObject({ resolved: "1", "not graded anew": "aenv__ledger-4: its output was shortened" });
    expect(readFileSync(join(tree.path, "predictions.r1.jsonl"), "utf8")).toContain("diff --git a/x b/x");
  });
});
