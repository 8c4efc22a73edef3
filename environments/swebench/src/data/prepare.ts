import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { readBoundedBytes } from "@aenv/kit";
import { isRowsFile } from "../dataset/files.ts";
import { loadDataset } from "../dataset/load.ts";
import { instanceIdOf, type Row } from "../dataset/row.ts";
import { isTaskRepo } from "../dataset/task-repo/read.ts";
import { getLogParser } from "../parsers/registry.ts";
import { makeSpec } from "../spec/spec.ts";
import { type DatasetInfo, INFO_FILE, ROWS_FILE, TASKS_FOLDER } from "./folder.ts";

export interface PrepareOptions {
  /** A .json, .jsonl or .parquet file or the URL of one, a task repository, or a folder with `<split>.parquet`. */
  readonly from: string;
  /** The data folder. One with other contents is refused. */
  readonly to: string;
  /** Splits; `test` if not given. Files have none. */
  readonly domains?: readonly string[];
  readonly fetch?: typeof fetch;
}

export interface Prepared {
  readonly to: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly warnings: readonly string[];
}

/** Writes the rows of a dataset, with all columns that grading needs, into a data folder. If it throws, nothing was written. */
export async function prepareData({ from, to, domains, fetch = globalThis.fetch }: PrepareOptions): Promise<Prepared> {
  assertReplaceable(to);
  const splits = domains ?? ["test"];
  const rows = await readSource(from, splits, fetch);
  checkRows(rows);
  const repo = !isRowsFile(from) && isTaskRepo(from) ? from : null;
  const info: DatasetInfo = { dataset: from, split: splits.join(","), task_repo: repo };
  replaceFolder(to, (draft) => {
    writeFileSync(join(draft, ROWS_FILE), rows.map((row) => `${rowText(row)}\n`).join(""));
    if (repo !== null) copyTasks(repo, rows, join(draft, TASKS_FOLDER));
    writeFileSync(join(draft, INFO_FILE), `${JSON.stringify(info, null, 2)}\n`);
  });
  const countOf = (column: string) => String(new Set(rows.map((row) => row.get(column))).size);
  const facts = [
    ["instances", String(rows.length)],
    ["repositories", countOf("repo")],
    ["images", countOf("image")],
  ] as const;
  const silent = rows.filter((row) => !row.get("problem_statement")).map(instanceIdOf);
  const warnings = silent.length === 0 ? [] : [`without a problem statement, so for grading only: ${silent.join(", ")}`];
  return { to, facts, warnings };
}

async function readSource(from: string, splits: readonly string[], fetch: typeof globalThis.fetch): Promise<Row[]> {
  if (/^https?:\/\//i.test(from)) return readUrl(from, fetch);
  if (isRowsFile(from)) return loadDataset(from);
  return (await Promise.all(splits.map((split) => loadDataset(from, { split })))).flat();
}

const MAX_DATASET_BYTES = 2 ** 30;

async function readUrl(url: string, fetch: typeof globalThis.fetch): Promise<Row[]> {
  const name = basename(new URL(url).pathname);
  if (!isRowsFile(name)) throw new Error(`${url} is not the address of a .json, .jsonl or .parquet file`);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`);
  const folder = mkdtempSync(join(tmpdir(), "swe-bench-"));
  try {
    writeFileSync(join(folder, name), await readBoundedBytes(response.body, { maxBytes: MAX_DATASET_BYTES }));
    return await loadDataset(join(folder, name));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Every row can be graded: otherwise a run would fail in its middle. */
function checkRows(rows: readonly Row[]): void {
  if (rows.length === 0) throw new Error("the dataset has no rows");
  const ids = rows.map(instanceIdOf);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw new Error(`the dataset has two rows of ${twice}`);
  for (const row of rows) assertGradable(row);
}

/** Throws if a row lacks what grading needs. */
export function assertGradable(row: Row): void {
  const { instanceId, logParser, evalType } = makeSpec(row);
  getLogParser(logParser);
  if (evalType !== "pass_and_fail" && evalType !== "fail_only")
    throw new Error(`eval_type of ${instanceId} is '${evalType}'; it must be pass_and_fail or fail_only`);
}

function copyTasks(repo: string, rows: readonly Row[], to: string): void {
  for (const id of rows.map(instanceIdOf)) cpSync(join(repo, "tasks", id), join(to, id), { recursive: true });
}

function rowText(row: Row): string {
  return JSON.stringify(row, (_, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
}

function assertReplaceable(to: string): void {
  if (!existsSync(to) || existsSync(join(to, INFO_FILE)) || readdirSync(to).length === 0) return;
  throw new Error(`${to} contains other files than prepared data (it has no ${INFO_FILE}); use an empty or a new folder`);
}

/** The new folder is written beside the old one and renamed. */
function replaceFolder(to: string, write: (draft: string) => void): void {
  const target = resolve(to);
  mkdirSync(dirname(target), { recursive: true });
  const drafts = mkdtempSync(join(dirname(target), `.${basename(target)}-draft-`));
  try {
    mkdirSync(join(drafts, "new"));
    write(join(drafts, "new"));
    if (existsSync(target)) renameSync(target, join(drafts, "old"));
    renameSync(join(drafts, "new"), target);
  } finally {
    rmSync(drafts, { recursive: true, force: true });
  }
}
