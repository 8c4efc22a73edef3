import { resolve } from "node:path";
import { listRuns, type RunSummary } from "@aenv/rollout";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addRunsOption, type RunsOptions } from "../../rollout/run-option.ts";
import { meanText, moneyText } from "../../rollout/summary-view.ts";
import { table } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends RunsOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command.summary("list runs").description("Lists the runs in a folder with their settings and their mean reward.");
  addRunsOption(addOutputOption(command))
    .addHelpText("after", examples("aenv runs list", "aenv runs list --runs ./experiments --json"))
    .action((options: Options) => list(options, terminal));
}

function list(options: Options, terminal: Terminal): void {
  const printer = printerFor(terminal, options);
  const found = listRuns(resolve(terminal.cwd, options.runs)).map((run) => ({ run, settings: run.settings(), summary: run.summary() }));
  printer.json(found.map(({ run, settings, summary }) => ({ name: run.name, folder: run.path, settings, summary })));
  if (printer.isJson) return;
  if (found.length === 0) {
    printer.print("No runs. Play one with: aenv rollout echo");
    return;
  }
  const { colors } = printer.output;
  const rows = found.map(({ run, settings, summary }) => [
    colors.bold(run.name),
    settings?.environment ?? "",
    settings?.agent.name ?? "",
    settings?.model ?? "",
    `${settings?.tasks.length ?? 0} x ${settings?.samples ?? 0}`,
    summary === null ? colors.yellow("not complete") : meanText(summary.reward),
    passText(summary),
    summary === null ? "" : unscoredText(summary),
    summary?.cost ? moneyText(summary.cost.total) : "",
  ]);
  const titles = ["run", "environment", "agent", "model", "tasks x samples", "mean reward", "pass@1", "unscored", "cost"];
  // The name of a run says the environment, unless --run has given it another one.
  printer.print(table(titles, rows, printer.output, ["environment", "tasks x samples"]));
}

function passText(summary: RunSummary | null): string {
  const first = summary?.passAtK[1];
  return first === undefined ? "" : `${(100 * first.value).toFixed(1)} %`;
}

function unscoredText({ episodes, scored }: RunSummary): string {
  return episodes === scored ? "" : `${episodes - scored} of ${episodes}`;
}
