import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { splitRef } from "@aenv/contract";
import type { RunSettings } from "@aenv/rollout";
import { getBenchmark } from "../project/benchmarks.ts";
import type { SourceOptions } from "../rollout/source.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";
import { datasetsFolder, digestOfFolder, openDataset } from "./dataset.ts";
import { markUsed } from "./stored-datasets.ts";

/**
 * The data of a benchmark's run, for commands that play the run again: where it was, or prepared again from what it was prepared from.
 * Empty for other runs, and if AENV_DATA_DIR names the data.
 */
export async function dataOfRun(
  settings: RunSettings,
  { systemUrl }: Pick<SourceOptions, "systemUrl">,
  terminal: Terminal,
): Promise<{ readonly dataDir?: string }> {
  const { data, data_digest } = settings;
  // A server has data of its own.
  if (data === undefined || systemUrl !== undefined || terminal.env.AENV_DATA_DIR) return {};
  const { name } = splitRef(settings.environment);
  if (existsSync(join(data.folder, name))) {
    const isStored = dirname(data.folder) === datasetsFolder(terminal);
    if (isStored) markUsed(data.folder);
    if (digestOfFolder(data.from === undefined ? join(data.folder, name) : data.folder) !== data_digest)
      warn(terminal, `the data in ${data.folder} is not that with which the run was played`);
    return { dataDir: data.folder };
  }
  if (data.from === undefined)
    throw new Failure(`the run was played with the data in ${data.folder}, which is not there any more`, {
      exit: "usage",
      hint: `Prepare it again with: aenv bench data ${name} --from DIR_OR_URL`,
    });
  const { from, domains } = data;
  const benchmark = getBenchmark(settings.folder ?? name, terminal.cwd);
  const dataset = await openDataset(benchmark, { from, ...(domains && { domain: domains }) }, terminal);
  if (dataset.digest === data_digest) return { dataDir: dataset.dataDir };
  throw new Failure(`the run was played with other data than ${data.from} has now`, {
    exit: "usage",
    hint: "Give the folder of the data that it was played with as AENV_DATA_DIR.",
  });
}
