import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { compareText } from "@aenv/benchmark";
import { packageContent } from "../checksum/package-hash.ts";
import type { MetricType } from "../metrics/metrics.ts";
import { parseTaskToml } from "../task/config/toml.ts";
import { isFile, isFolder, readText } from "../task/files.ts";
import { formatOf } from "../task/load.ts";
import { parseManifest } from "./manifest.ts";
import { findDataset, parseRegistry, type RegistryDataset } from "./registry.ts";

/** A task of a dataset, before it is read. */
export interface DatasetTask {
  /** What filters match: the folder's name, or `org/name` of a package. */
  readonly name: string;
  readonly folder: string;
  /** What a package is pinned to; null if it is not pinned. */
  readonly digest: string | null;
}

export interface Dataset {
  /** The name in results; null for a single task. */
  readonly name: string | null;
  /** How its rewards are summed up; empty for the default. */
  readonly metrics: readonly DatasetMetric[];
  readonly tasks: readonly DatasetTask[];
  /** Tasks that cannot be opened here, and why. */
  readonly missing: readonly { readonly name: string; readonly reason: string }[];
}

export type DatasetMetric = { readonly type: MetricType } | { readonly type: "uv-script"; readonly script: string };

/** The script of a package's metric. */
const METRIC_SCRIPT = "metric.py";

/** Opens a folder with one task or with many, a registry file, or a `dataset.toml`. `reference` names a dataset of a registry. */
export async function openDataset(given: string, reference: string | null = null): Promise<Dataset> {
  const path = resolve(given);
  if (await isFile(path)) return path.endsWith(".toml") ? openManifest(path) : openRegistry(path, reference);
  if (!(await isFolder(path))) throw new Error(`${path} does not exist`);
  if ((await formatOf(path)) !== null)
    return { name: null, metrics: [], tasks: [{ name: basename(path), folder: path, digest: null }], missing: [] };
  if (await isFile(join(path, "dataset.toml"))) return openManifest(join(path, "dataset.toml"));
  return { name: basename(path), metrics: [], tasks: await listTasks(path), missing: [] };
}

/** The folders of tasks in a folder, sorted by name. */
async function listTasks(folder: string): Promise<DatasetTask[]> {
  const tasks: DatasetTask[] = [];
  for (const name of (await readdir(folder)).sort(compareText)) {
    if ((await formatOf(join(folder, name))) !== null) tasks.push({ name, folder: join(folder, name), digest: null });
  }
  return tasks;
}

/** Paths are relative to the registry file. Tasks of a repository must have been fetched before. */
async function openRegistry(file: string, reference: string | null): Promise<Dataset> {
  const registry = parseRegistry(await readFile(file, "utf8"));
  const [only] = registry;
  if (reference === null && registry.length !== 1) {
    throw new Error(
      `${file} has ${registry.length} datasets; name one with --domain or TERMINAL_BENCH_DATASET: ${registry.map(({ name, version }) => `${name}@${version}`).join(", ")}`,
    );
  }
  const dataset = reference === null && only !== undefined ? only : findDataset(registry, reference ?? "");
  const remote = dataset.tasks.filter(({ git_url }) => git_url !== null);
  const local = dataset.tasks.filter(({ git_url }) => git_url === null);
  return {
    name: dataset.name,
    metrics: dataset.metrics.map((metric) => registryMetric(metric, dirname(file))),
    tasks: local.map(({ path }) => ({ name: basename(path), folder: resolve(dirname(file), path), digest: null })),
    missing: remote.map(({ name, git_url }) => ({ name, reason: `it is in the repository ${git_url}; fetch it and use its folder` })),
  };
}

/** The pinned tasks in the folders beside the manifest. A folder counts only if its content has the pinned digest. */
async function openManifest(file: string): Promise<Dataset> {
  const manifest = parseManifest(await readText(file));
  const found = new Map<string, { folder: string; digest: string }[]>();
  for (const { folder } of await listTasks(dirname(file))) {
    const name = await packageName(folder);
    if (name === null) continue;
    found.set(name, [...(found.get(name) ?? []), { folder, digest: `sha256:${(await packageContent(folder)).hash}` }]);
  }
  const tasks: DatasetTask[] = [];
  const missing: { name: string; reason: string }[] = [];
  for (const { name, digest } of manifest.tasks) {
    const folders = found.get(name) ?? [];
    const match = folders.find((folder) => folder.digest === digest);
    if (match !== undefined) tasks.push({ name, folder: match.folder, digest });
    else if (folders.length === 0) missing.push({ name, reason: `no folder beside ${basename(file)} has the task ${name}` });
    else missing.push({ name, reason: `its content is ${folders.map((folder) => folder.digest).join(", ")}, not ${digest}` });
  }
  const script = join(dirname(file), METRIC_SCRIPT);
  const isScripted = manifest.files.some(({ path }) => path === METRIC_SCRIPT) && (await isFile(script));
  return { name: manifest.dataset.name, metrics: isScripted ? [{ type: "uv-script", script }] : [], tasks, missing };
}

/** The path of a script is relative to the registry file. */
function registryMetric({ type, kwargs }: RegistryDataset["metrics"][number], folder: string): DatasetMetric {
  if (type !== "uv-script") return { type };
  if (typeof kwargs.script_path !== "string")
    throw new Error("a metric of the kind uv-script needs the path of its script: kwargs.script_path");
  return { type, script: resolve(folder, kwargs.script_path) };
}

async function packageName(folder: string): Promise<string | null> {
  if (!(await isFile(join(folder, "task.toml")))) return null;
  try {
    return parseTaskToml(await readText(join(folder, "task.toml"))).task?.name ?? null;
  } catch {
    // A broken task has no name; the manifest then says that its task is missing.
    return null;
  }
}
