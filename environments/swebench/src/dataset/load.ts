import { existsSync } from "node:fs";
import { join } from "node:path";
import { PyError } from "@aenv/benchmark";
import { isRowsFile, readRowsFile } from "./files.ts";
import { completeRow } from "./legacy/row.ts";
import { datasetName } from "./names.ts";
import { instanceIdOf, type Row } from "./row.ts";
import { isTaskRepo, readTaskRepo } from "./task-repo/read.ts";

export interface DatasetOptions {
  readonly split?: string;
  /** Only these instances. An empty list is no filter. */
  readonly instanceIds?: readonly string[];
}

/**
 * The rows of a dataset: a file, a task repository, or a folder with `<split>.parquet`. Rows that were made for release 4 and older get
 * their missing columns.
 */
export async function loadDataset(source: string, { split = "test", instanceIds = [] }: DatasetOptions = {}): Promise<Row[]> {
  if (!isRowsFile(source) && isTaskRepo(source)) return readTaskRepo(source, { split, instanceIds });
  const rows = await readRowsFile(isRowsFile(source) ? source : splitFile(datasetName(source), split));
  return selectRows(rows, instanceIds).map(completeRow);
}

/** The rows of these instances in the order of the dataset. Raises if one of them is missing. */
export function selectRows(rows: readonly Row[], instanceIds: readonly string[]): readonly Row[] {
  if (instanceIds.length === 0) return rows;
  const wanted = new Set(instanceIds);
  const known = new Set(rows.map(instanceIdOf));
  const missing = [...wanted].filter((id) => !known.has(id));
  if (missing.length > 0) throw new PyError("ValueError", `Some instance IDs not found in dataset!\nMissing IDs:\n${missing.join(" ")}`);
  return rows.filter((row) => wanted.has(instanceIdOf(row)));
}

function splitFile(name: string, split: string): string {
  const file = join(name, `${split}.parquet`);
  if (existsSync(file)) return file;
  const saved = join(name, split);
  if (existsSync(join(saved, "dataset_info.json")))
    throw new PyError("ValueError", `${saved} was saved in the Arrow format: save it with to_parquet("${file}") instead`);
  throw new PyError(
    "FileNotFoundError",
    `there is no dataset '${name}' here, and datasets are not downloaded: name a .json, .jsonl or .parquet file, a task repository, or a folder that has ${split}.parquet`,
  );
}
