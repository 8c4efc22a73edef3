import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { DatasetMetric } from "../dataset/open.ts";

/** Describes a prepared data folder. */
export const DATASET_FILE = "dataset.json";

export interface DatasetFacts {
  /** Null if the folder was not prepared. */
  readonly name: string | null;
  /** Scripts are in the folder. */
  readonly metrics: readonly DatasetMetric[];
}

/** What is known of the dataset that was prepared here. */
export async function readDatasetFacts(folder: string): Promise<DatasetFacts> {
  const text = await readFile(join(folder, DATASET_FILE), "utf8").catch(() => "{}");
  const { name = null, metrics = [] } = JSON.parse(text) as Partial<DatasetFacts>;
  return {
    name,
    metrics: metrics.map((metric) => (metric.type === "uv-script" ? { ...metric, script: join(folder, metric.script) } : metric)),
  };
}
