import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compareText } from "@aenv/benchmark";
import { isFile } from "../task/files.ts";
import { type JobResult, readJobResult, writeJobResult } from "./job-result.ts";
import { writeJson } from "./json.ts";
import { readTrialResult, type TrialResult, writeTrialResult } from "./trial-result.ts";

/** Writes a trial's configuration before it runs. */
export async function writeTrialConfig(folder: string, config: unknown): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeWhole(join(folder, "config.json"), writeJson(config));
}

/** Writes a trial's result, and its exception as a text. */
export async function writeTrial(folder: string, result: TrialResult): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (result.exception_info !== null) await writeFile(join(folder, "exception.txt"), result.exception_info.exception_traceback);
  await writeWhole(join(folder, "result.json"), writeTrialResult(result));
}

export async function writeJob(folder: string, result: JobResult, config?: unknown): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (config !== undefined) await writeWhole(join(folder, "config.json"), writeJson(config));
  await writeWhole(join(folder, "result.json"), writeJobResult(result));
}

/** Writes a job's `lock.json`. */
export async function writeLock(folder: string, lock: unknown): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeWhole(join(folder, "lock.json"), writeJson(lock));
}

/** Reads a trial's result, also one that Harbor wrote. */
export async function readTrial(path: string): Promise<TrialResult> {
  return readTrialResult(await readFile(path, "utf8"));
}

export interface JobFolder {
  readonly result: JobResult | null;
  readonly trials: readonly { readonly folder: string; readonly result: TrialResult }[];
  /** Trials without a result: they were interrupted. */
  readonly unfinished: readonly string[];
}

/** Reads a job's folder, also one that Harbor wrote. */
export async function readJob(folder: string): Promise<JobFolder> {
  const trials: { folder: string; result: TrialResult }[] = [];
  const unfinished: string[] = [];
  for (const entry of (await readdir(folder, { withFileTypes: true })).sort((a, b) => compareText(a.name, b.name))) {
    const trial = join(folder, entry.name);
    if (!entry.isDirectory() || !(await isFile(join(trial, "config.json")))) continue;
    if (await isFile(join(trial, "result.json")))
      trials.push({ folder: trial, result: readTrialResult(await readFile(join(trial, "result.json"), "utf8")) });
    else unfinished.push(trial);
  }
  const own = join(folder, "result.json");
  return { result: (await isFile(own)) ? readJobResult(await readFile(own, "utf8")) : null, trials, unfinished };
}

/** Other programs read these files while a job runs, so they never see half of one. */
async function writeWhole(path: string, content: string): Promise<void> {
  await writeFile(`${path}.part`, content);
  await rename(`${path}.part`, path);
}
