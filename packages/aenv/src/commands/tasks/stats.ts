import { scoreOf, summarise, type TaskSummary } from "@aenv/rollout";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addRunsOption, getRun, type RunsOptions } from "../../rollout/run-option.ts";
import { table } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends RunsOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("show the pass rate of each task")
    .description(
      "Shows the pass rate of each task in a run, the hardest first, for a curriculum. Unscored episodes are counted and left out of the rates.",
    )
    .argument("<run>", "the name of the run, or its folder");
  addRunsOption(addOutputOption(command))
    .addHelpText("after", examples("aenv tasks stats NAME", "aenv tasks stats ./runs/NAME --json"))
    .action((named: string, options: Options) => stats(named, options, terminal));
}

async function stats(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const run = getRun(named, options, terminal);
  const scores = [];
  for await (const trajectory of run.trajectories()) scores.push(scoreOf(trajectory));
  const { tasks } = summarise(scores, { passReward: run.settings()?.pass_reward ?? 1 });
  const rated = tasks.map((one) => ({ ...one, passRate: passRateOf(one) })).sort(byPassRate);
  printer.json({ run: run.name, tasks: rated });
  if (printer.isJson) return;
  const { colors } = printer.output;
  const number = (value: number | null) => (value === null ? colors.dim("-") : value.toFixed(3));
  const rows = rated.map(({ task, episodes, scored, passes, passRate, mean }) => [
    task || "(no task)",
    number(passRate),
    `${passes}/${scored}`,
    number(mean),
    String(episodes - scored),
  ]);
  printer.print(table(["task", "pass rate", "passed", "mean reward", "unscored"], rows, printer.output));
}

function passRateOf({ passes, scored }: TaskSummary): number | null {
  return scored === 0 ? null : passes / scored;
}

/** The lowest rate first; tasks without a score last. */
function byPassRate(a: { passRate: number | null; task: string }, b: { passRate: number | null; task: string }): number {
  return (a.passRate ?? 2) - (b.passRate ?? 2) || (a.task < b.task ? -1 : 1);
}
