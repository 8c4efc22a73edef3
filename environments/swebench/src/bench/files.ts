import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Json } from "@aenv/benchmark";
import type { Dataset } from "../data/folder.ts";
import { instanceIdOf } from "../dataset/row.ts";
import { runReportPath } from "../runs/paths.ts";
import { byInstance, type Prediction, readPredictions } from "../runs/predictions.ts";
import { RunFolder } from "../runs/run-folder.ts";
import { makeRunReport, type RunReport, reportedModel, writeRunReport } from "../runs/run-report.ts";

/** The result files of one sample of all tasks: a run of the reference, with the predictions that it was made from. */
export class RunFiles {
  readonly run: RunFolder;
  readonly #folder: string;
  readonly #id: string;

  constructor(folder: string, id: string) {
    this.run = new RunFolder(folder, id);
    this.#folder = folder;
    this.#id = id;
  }

  /** The ids of the runs in a folder. */
  static idsIn(folder: string): string[] {
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .flatMap((name) => /^predictions\.(.+)\.jsonl$/.exec(name)?.[1] ?? [])
      .sort();
  }

  /** The reference numbers no samples: those after the first are runs of their own. */
  static idOf(run: string, sample: number): string {
    return sample === 0 ? run : `${run}.${sample + 1}`;
  }

  readPredictions(): Map<string, Prediction> {
    return existsSync(this.#predictions) ? byInstance(readPredictions(readFileSync(this.#predictions, "utf8"), "jsonl")) : new Map();
  }

  /** The instances that the run report is about; null if there is none. */
  readTaskIds(dataset: Dataset, model: string): string[] | null {
    const file = runReportPath(this.#folder, model, this.#id);
    if (!existsSync(file)) return null;
    const report = JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<string, readonly string[] | undefined>>;
    const ids = new Set(["completed_ids", "incomplete_ids", "empty_patch_ids", "error_ids"].flatMap((key) => report[key] ?? []));
    return dataset.rows.map(instanceIdOf).filter((id) => ids.has(id));
  }

  /** Writes the predictions and the run report, about the named instances. Nothing without predictions. */
  write(dataset: Dataset, taskIds: readonly string[] | null, predictions: ReadonlyMap<string, Prediction>, now: Date): RunReport | null {
    if (predictions.size === 0) return null;
    const lines = [...predictions.values()].map(({ all }) => `${JSON.stringify(Object.fromEntries(all))}\n`);
    mkdirSync(dirname(this.#predictions), { recursive: true });
    writeFileSync(this.#predictions, lines.join(""));
    const { dataset: name, split, task_repo: taskRepo } = dataset.info;
    this.run.keepInfo({ dataset: name, split, taskRepo }, now);
    const report = makeRunReport({ instanceIds: taskIds ?? dataset.rows.map(instanceIdOf), predictions, read: this.run.read });
    writeFileSync(runReportPath(this.#folder, reportedModel(predictions), this.#id), writeRunReport(report));
    return report;
  }

  get #predictions(): string {
    return join(this.#folder, `predictions.${this.#id}.jsonl`);
  }
}

export function predictionOf(instanceId: string, model: string, patch: string | null): Prediction {
  const all = new Map<string, Json>([
    ["instance_id", instanceId],
    ["model_name_or_path", model],
    ["model_patch", patch],
  ]);
  return { instanceId, all };
}

/** What is shown after a run; of several samples the sums. */
export function summaryOf(reports: readonly RunReport[]): readonly (readonly [name: string, value: string])[] {
  const count = (of: (report: RunReport) => readonly string[]) => String(reports.reduce((sum, report) => sum + of(report).length, 0));
  return [
    ["resolved", count(({ resolved }) => resolved)],
    ["unresolved", count(({ unresolved }) => unresolved)],
    ["empty patches", count(({ emptyPatch }) => emptyPatch)],
    ["errors", count(({ errors }) => errors)],
    ["not graded", count(({ incomplete }) => incomplete)],
    ["likely failures of infrastructure", count(({ infraFailure }) => infraFailure)],
  ];
}
