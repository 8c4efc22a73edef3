import { readFileSync } from "node:fs";
import { openDataset } from "../data/folder.ts";
import { instanceIdOf } from "../dataset/row.ts";
import { byInstance, modelOf, patchOf, predictionsExtension, readPredictions as readFile } from "../runs/predictions.ts";
import { regradeRun } from "../runs/regrade.ts";
import { reportedModel } from "../runs/run-report.ts";
import { checkPredictions, goldPredictions } from "../runs/select.ts";
import { makeSpec } from "../spec/spec.ts";
import { RunFiles, summaryOf } from "./files.ts";

interface PredictionsOptions {
  readonly dataFolder: string;
  readonly predictions: string;
  readonly taskIds?: readonly string[];
}

/** Patches of a file, or the solutions of the dataset. Empty ones are not graded. */
async function readPredictions({ dataFolder, predictions: source, taskIds }: PredictionsOptions) {
  const { rows } = await openDataset(dataFolder);
  const read = () => readFile(readFileSync(source, "utf8"), predictionsExtension(source));
  const predictions = byInstance(source === "gold" ? goldPredictions(rows) : read());
  checkPredictions(predictions, rows);
  const wanted = taskIds === undefined || taskIds.length === 0 ? null : new Set(taskIds);
  return [...predictions.values()]
    .filter(({ instanceId }) => wanted === null || wanted.has(instanceId))
    .map((prediction) => {
      const { instanceId } = prediction;
      const patch = patchOf(prediction);
      const isEmpty = patch === null || patch === "";
      return { taskId: instanceId, model: modelOf(prediction), arguments: isEmpty ? null : { instance: instanceId, model_patch: patch } };
    });
}

/** Grades the stored output of the tests anew, in all runs of the folder. */
async function regrade({ dataFolder, folder, run }: { dataFolder: string; folder: string; run: { readonly startedAt: Date } }) {
  const dataset = await openDataset(dataFolder);
  const ids = RunFiles.idsIn(folder);
  if (ids.length === 0) throw new Error(`${folder} has no results of swe-bench: there is no predictions.RUN.jsonl in it`);
  const warnings: string[] = [];
  const reports = ids.flatMap((id) => {
    const files = new RunFiles(folder, id);
    const predictions = files.readPredictions();
    const specs = dataset.rows.filter((row) => predictions.has(instanceIdOf(row))).map(makeSpec);
    for (const { instanceId, error } of regradeRun(files.run, specs, predictions))
      if (error !== null) warnings.push(`${instanceId}: ${error}`);
    const taskIds = predictions.size === 0 ? null : files.readTaskIds(dataset, reportedModel(predictions));
    return files.write(dataset, taskIds, predictions, run.startedAt) ?? [];
  });
  return { summary: [...summaryOf(reports), ...warnings.map((text) => ["not graded anew", text] as const)] };
}

export const grading = { readPredictions, regrade };
