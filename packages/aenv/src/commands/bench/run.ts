import type { Command } from "commander";
import { addDataOptions, type DataOptions } from "../../bench/data-options.ts";
import { dataSettings, openDataset } from "../../bench/dataset.ts";
import { loadBenchModule } from "../../bench/module.ts";
import { requireImages } from "../../bench/require-images.ts";
import { openResults } from "../../bench/results.ts";
import { examples } from "../../options/examples.ts";
import { getBenchmark } from "../../project/benchmarks.ts";
import { playRollout } from "../../rollout/rollout.ts";
import { addRolloutOptions, type RolloutOptions } from "../../rollout/rollout-options.ts";
import { Failure } from "../../terminal/failure.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends RolloutOptions, DataOptions {
  readonly out?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("evaluate an agent on a benchmark")
    .description(
      "Prepares a benchmark's data, gets the images of its tasks, plays an agent against them and scores every episode. Results are written in the benchmark's own formats too. The same command line goes on with a run that was stopped.",
    )
    .argument("<name>", "the benchmark, or the folder of a project")
    .argument("[command...]", "the program of the agent 'command', after --");
  addDataOptions(command).option(
    "--out <folder>",
    "where the benchmark's own result files are written; the folder results of the run if not given",
  );
  addRolloutOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv bench run tau2 --from ./tau2-bench --task mock/create_task_1",
        "aenv bench run terminal-bench --from ./tasks --agent oracle --engine oci -c 4",
        "aenv bench run terminal-bench --from registry.json --domain my-tasks@1.0 --agent oracle --engine oci",
        "aenv bench run swe-bench --from rows.jsonl --agent openai --model M --base-url http://127.0.0.1:8000/v1 --engine docker",
      ),
    )
    .action((name: string, program: string[], options: Options) => run(name, program, options, terminal));
}

async function run(named: string, program: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const benchmark = getBenchmark(named, terminal.cwd);
  const module = await loadBenchModule(benchmark);
  const { engine, systemUrl, from, out } = options;
  if (systemUrl !== undefined && from !== undefined)
    throw new Failure("--from prepares data on this machine, and a server has its own", {
      exit: "usage",
      hint: `Prepare the data where the server runs: aenv bench data ${benchmark.name} --from ${from}`,
    });
  const dataset = await openDataset(benchmark, options, terminal);
  const environment = systemUrl === undefined ? benchmark.folder : `${benchmark.name}@${benchmark.version}`;
  await playRollout(environment, program, { ...options, dataDir: dataset.dataDir }, terminal, {
    settings: dataSettings(dataset),
    prepare: async ({ isEmbedded }, tasks) => {
      const taskIds = tasks.map(({ id }) => id);
      if (isEmbedded) await requireImages({ benchmark, module, dataset, engine, taskIds, variables: options.var ?? {} }, terminal);
    },
    open: (folder, settings) => openResults({ module, dataset, folder, settings, concurrency: options.concurrency, out }, terminal),
  });
}
