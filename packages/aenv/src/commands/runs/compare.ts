import { meanOfGroups, type RunFolder, scoreOf } from "@aenv/rollout";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addRunsOption, getRun, type RunsOptions } from "../../rollout/run-option.ts";
import { meanText } from "../../rollout/summary-view.ts";
import { facts, table } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends RunsOptions, FormatOptions {}

const MAX_ROWS = 30;

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("compare two runs task by task")
    .description("Compares the mean rewards of two runs on the tasks that both have scored, and gives the difference with its interval.")
    .argument("<run>", "the name of the first run, or its folder")
    .argument("<other>", "the name of the second run, or its folder");
  addRunsOption(addOutputOption(command))
    .addHelpText("after", examples("aenv runs compare before after"))
    .action((one: string, other: string, options: Options) => compare(one, other, options, terminal));
}

async function compare(one: string, other: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const [first, second] = await Promise.all([one, other].map((named) => meansOf(getRun(named, options, terminal))));
  const shared = [...(first ?? new Map<string, number>())].flatMap(([task, mean]) => {
    const otherMean = second?.get(task);
    return otherMean === undefined ? [] : [{ task, first: mean, second: otherMean, difference: otherMean - mean }];
  });
  // Paired by task: what makes a task hard is in both means and cancels out.
  const difference = meanOfGroups(shared.map((row) => [row.difference]));
  printer.json({ tasks: shared, difference });
  if (printer.isJson) return;
  const changed = shared.filter((row) => row.difference !== 0).sort((a, b) => a.difference - b.difference);
  const rows = changed.slice(0, MAX_ROWS).map((row) => [row.task, row.first.toFixed(3), row.second.toFixed(3), row.difference.toFixed(3)]);
  if (rows.length > 0) printer.print(table(["task", one, other, "difference"], rows, printer.output));
  const lines: [string, string][] = [
    ["tasks in both", String(shared.length)],
    ["changed", String(changed.length)],
    ["mean difference", meanText(difference)],
  ];
  printer.print(facts(lines, printer.output));
}

/** The mean reward of each task that has a score. */
async function meansOf(run: RunFolder): Promise<Map<string, number>> {
  const sums = new Map<string, { sum: number; count: number }>();
  for await (const trajectory of run.trajectories()) {
    const { task, reward } = scoreOf(trajectory);
    if (reward === null) continue;
    const { sum, count } = sums.get(task) ?? { sum: 0, count: 0 };
    sums.set(task, { sum: sum + reward, count: count + 1 });
  }
  return new Map([...sums].map(([task, { sum, count }]) => [task, sum / count]));
}
