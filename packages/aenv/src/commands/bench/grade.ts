import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { RunSettings } from "@aenv/rollout";
import type { Command } from "commander";
import { addDataOptions, type DataOptions } from "../../bench/data-options.ts";
import { openDataset } from "../../bench/dataset.ts";
import { type GradeOptions, gradePredictions, gradingOf } from "../../bench/grade.ts";
import { loadBenchModule } from "../../bench/module.ts";
import { benchRunOf, resultsFolder, startOf } from "../../bench/results.ts";
import { dataOfRun } from "../../bench/run-data.ts";
import { examples } from "../../options/examples.ts";
import { collect } from "../../options/pairs.ts";
import { type Benchmark, getBenchmark } from "../../project/benchmarks.ts";
import { addRunOptions } from "../../rollout/rollout-options.ts";
import { getRun } from "../../rollout/run-option.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import { facts } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { warn } from "../../terminal/warning.ts";

interface Options extends Omit<GradeOptions, "predictions">, DataOptions {
  readonly predictions?: string;
  readonly regrade?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("grade answers that exist already")
    .description(
      "Grades answers to the tasks of a benchmark without an agent, each as an episode of a run, and writes the benchmark's own reports. The same command line goes on with a run that was stopped.",
    )
    .argument("<name>", "the benchmark, or the folder of a project");
  addDataOptions(command)
    .option("--predictions <file>", "a file of answers, or gold for the benchmark's own solutions")
    .option(
      "--regrade <run>",
      "grade what this run has stored anew, without running anything, with the data of the run unless --from names other data",
    )
    .option("-t, --task <id>", "only the answer to this task; may be repeated", collect)
    .option("--out <folder>", "where the benchmark's own result files are written; the folder results of the run if not given");
  addRunOptions(command, 8)
    .addHelpText(
      "after",
      examples(
        "aenv bench grade swe-bench --from rows.jsonl --predictions preds.jsonl --engine docker",
        "aenv bench grade swe-bench --from rows.jsonl --predictions gold --engine oci -c 4 --run gold",
        "aenv bench grade swe-bench --regrade gold",
      ),
    )
    .action((name: string, options: Options) => grade(name, options, terminal));
}

async function grade(named: string, options: Options, terminal: Terminal): Promise<void> {
  const benchmark = getBenchmark(named, terminal.cwd);
  const { predictions, regrade } = options;
  if ((predictions === undefined) === (regrade === undefined))
    throw new Failure("name the answers to grade, or a run to grade anew", {
      exit: "usage",
      hint: "Add: --predictions FILE, or --regrade RUN",
    });
  const module = await loadBenchModule(benchmark);
  const grading = gradingOf(module, benchmark);
  if (regrade !== undefined) {
    if (grading.regrade === undefined) throw new Failure(`${benchmark.name} cannot grade a run anew`, { exit: "usage" });
    const folder = getRun(regrade, options, terminal);
    const settings = folder.settings();
    const results = resultsFolder(folder, options.out, terminal);
    if (settings === null || !existsSync(results))
      throw new Failure(`the run '${regrade}' has no results of ${benchmark.name} in ${results}`, { exit: "usage" });
    const dataFolder = await dataToRegrade(benchmark, settings, options, terminal);
    const run = benchRunOf(folder, settings, await startOf(folder));
    const { summary } = await grading.regrade({ dataFolder, folder: results, run });
    const printer = createPrinter(terminal, options.json === true);
    printer.json({ run: folder.name, folder: results, results: Object.fromEntries(summary) });
    printer.print(facts(summary, printer.output));
    return;
  }
  const path = predictions === "gold" ? predictions : resolve(terminal.cwd, String(predictions));
  if (path !== "gold" && !existsSync(path)) throw new Failure(`there is no ${path}`, { exit: "usage" });
  const dataset = await openDataset(benchmark, options, terminal);
  await gradePredictions({ benchmark, module, dataset }, { ...options, predictions: path }, terminal);
}

/** The folder of the data: what `--from` names, or what the run was graded with. */
async function dataToRegrade(benchmark: Benchmark, settings: RunSettings, options: Options, terminal: Terminal): Promise<string> {
  const { dataDir } = options.from === undefined ? await dataOfRun(settings, {}, terminal) : {};
  if (dataDir !== undefined) return join(dataDir, benchmark.name);
  const { folder, digest } = await openDataset(benchmark, options, terminal);
  if (settings.data_digest !== undefined && settings.data_digest !== digest)
    warn(terminal, `the data in ${folder} is not that with which the run was graded`);
  return folder;
}
