import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readRowsFile } from "../dataset/files.ts";
import { loadDataset } from "../dataset/load.ts";
import { instanceIdOf, type Row } from "../dataset/row.ts";

/** The rows of a prepared data folder, complete. */
export const ROWS_FILE = "dataset.jsonl";
/** Where they came from. */
export const INFO_FILE = "dataset.json";
/** A folder per task, of datasets that are task repositories: Dockerfiles, and files that the tests need. */
export const TASKS_FOLDER = "tasks";

export interface DatasetInfo {
  readonly dataset: string;
  readonly split: string;
  readonly task_repo: string | null;
}

/** The dataset in a data folder. */
export class Dataset {
  readonly folder: string;
  readonly rows: readonly Row[];
  readonly #byId: ReadonlyMap<string, Row>;

  constructor(folder: string, rows: readonly Row[]) {
    this.folder = folder;
    this.rows = rows;
    this.#byId = new Map(rows.map((row) => [instanceIdOf(row), row]));
  }

  get(instanceId: string): Row {
    const row = this.#byId.get(instanceId);
    if (row !== undefined) return row;
    throw new Error(`there is no instance '${instanceId}' in the dataset in ${this.folder}, which has ${this.rows.length}`);
  }

  /** The row that a `datasource` means: the id of an instance, `swebench/` and the id, or the image of one. */
  ofDatasource(datasource: string): Row {
    const id = datasource.slice(datasource.lastIndexOf("/") + 1);
    const row = this.#byId.get(datasource) ?? this.#byId.get(id) ?? this.rows.find((one) => one.get("image") === datasource);
    if (row !== undefined) return row;
    throw new Error(`the datasource '${datasource}' is neither the id nor the image of an instance of the dataset in ${this.folder}`);
  }

  get info(): DatasetInfo {
    const file = join(this.folder, INFO_FILE);
    if (!existsSync(file)) return { dataset: this.folder, split: "test", task_repo: null };
    return JSON.parse(readFileSync(file, "utf8")) as DatasetInfo;
  }

  /** A file that the tests of an instance need; null if the dataset does not contain it. */
  readAsset(instanceId: string, path: string): Uint8Array | null {
    if (path.split("/").includes("..")) return null;
    const file = join(this.folder, TASKS_FOLDER, instanceId, "test_assets", path);
    return statSync(file, { throwIfNoEntry: false })?.isFile() ? readFileSync(file) : null;
  }
}

const opened = new Map<string, { readonly stamp: string; readonly dataset: Promise<Dataset> }>();

/** Reads the dataset of a folder, once for each of its contents. The folder is a prepared one, or a dataset itself. */
export function openDataset(folder: string): Promise<Dataset> {
  const rows = join(folder, ROWS_FILE);
  const found = statSync(rows, { throwIfNoEntry: false });
  const stamp = found === undefined ? "" : `${found.mtimeMs} ${found.size} ${found.ino}`;
  const known = opened.get(folder);
  if (known !== undefined && known.stamp === stamp) return known.dataset;
  const read = found === undefined ? loadDataset(folder) : readRowsFile(rows);
  const dataset = read.then((all) => new Dataset(folder, all));
  opened.set(folder, { stamp, dataset });
  dataset.catch(() => opened.delete(folder));
  return dataset;
}
