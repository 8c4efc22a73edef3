import { randomBytes } from "node:crypto";
import { cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { imagesOfTask } from "../compose/images.ts";
import { hasServices } from "../compose/of-task.ts";
import { type DatasetMetric, openDataset } from "../dataset/open.ts";
import { problemsOf } from "../environment/open-options.ts";
import { loadTask } from "../task/load.ts";
import { DATASET_FILE } from "./dataset-file.ts";

export interface PrepareOptions {
  /** A folder of tasks or one task, a registry file, or a `dataset.toml`. */
  readonly from: string;
  readonly to: string;
  /** What is taken. Of a registry file: the dataset, as `name` or `name@version`. Of others: the tasks. */
  readonly domains?: readonly string[];
  /** A task that is missing or cannot be read is an error. */
  readonly isStrict?: boolean;
}

export interface PreparedTasks {
  readonly to: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly warnings: readonly string[];
}

/** Copies the tasks of a dataset into one folder. If it throws, nothing was written. */
export async function prepareData({ from, to, domains = [], isStrict = false }: PrepareOptions): Promise<PreparedTasks> {
  if (/^https?:/i.test(from)) throw new Error("datasets are not downloaded: fetch the repository, and name its folder of tasks");
  const isRegistry = from.endsWith(".json");
  if (isRegistry && domains.length > 1) throw new Error(`${domains.join(" and ")} are several datasets; name one of the registry file`);
  const dataset = await openDataset(from, isRegistry ? (domains[0] ?? null) : null);
  const isWanted = (folder: string) => isRegistry || domains.length === 0 || domains.includes(basename(folder));
  const folders = dataset.tasks.map(({ folder }) => folder).filter(isWanted);
  if (folders.length === 0) throw new Error(`${from} has no tasks: a task is a folder with task.toml or task.yaml`);
  const repeated = folders.map((folder) => basename(folder)).find((name, i, all) => all.indexOf(name) !== i);
  if (repeated !== undefined) throw new Error(`the dataset has two tasks in folders named '${repeated}'`);

  const { counts, warnings } = await inspect(folders);
  warnings.unshift(...dataset.missing.map(({ name, reason }) => `${name}: ${reason}`));
  if (isStrict && warnings.length > 0) throw new Error(warnings.join("\n"));

  const part = `${to}.part-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(part, { recursive: true });
    for (const folder of folders) await cp(folder, join(part, basename(folder)), { recursive: true, verbatimSymlinks: true });
    const metrics: DatasetMetric[] = [];
    for (const [i, metric] of dataset.metrics.entries()) {
      const script = `metric-${i + 1}.py`;
      if (metric.type === "uv-script") await cp(metric.script, join(part, script));
      metrics.push(metric.type === "uv-script" ? { ...metric, script } : metric);
    }
    const stored = { name: dataset.name ?? basename(from), tasks: folders.length, ...(metrics.length > 0 && { metrics }) };
    await writeFile(join(part, DATASET_FILE), `${JSON.stringify(stored, null, 2)}\n`);
    await mkdir(dirname(to), { recursive: true });
    await rm(to, { recursive: true, force: true });
    await rename(part, to);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
  const facts: [string, string][] = [
    ["dataset", dataset.name ?? basename(from)],
    ["tasks", String(folders.length)],
    ...Object.entries(counts).flatMap(([name, count]): [string, string][] =>
      name === SERVICES && count === 0 ? [] : [[name, String(count)]],
    ),
  ];
  return { to, facts, warnings };
}

/** Counted if there are any. */
const SERVICES = "tasks with several services (engine docker)";

/** What the tasks need, and which cannot be played. */
async function inspect(folders: readonly string[]): Promise<{ readonly counts: Record<string, number>; readonly warnings: string[] }> {
  const counts = { "images to build": 0, "images to pull": 0, [SERVICES]: 0 };
  const warnings: string[] = [];
  for (const folder of folders) {
    try {
      const task = await loadTask(folder);
      const problems = problemsOf(task, true);
      warnings.push(...[...problems, ...task.warnings].map((text) => `${basename(folder)}: ${text}`));
      if (problems.length > 0) continue;
      if (hasServices(task)) counts[SERVICES]++;
      for (const { build } of await imagesOfTask(task, "")) counts[build === null ? "images to pull" : "images to build"]++;
    } catch (error) {
      warnings.push(`${basename(folder)}: ${(error as Error).message}`);
    }
  }
  return { counts, warnings };
}
