import {
  type Difference,
  differences,
  type EpisodeScore,
  type MeanWithInterval,
  meanOfGroups,
  type RunFolder,
  type RunSettings,
  type RunSummary,
  scoreOf,
  summarise,
} from "@aenv/rollout";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addRunsOption, getRun, type RunsOptions } from "../../rollout/run-option.ts";
import { meanText, moneyText } from "../../rollout/summary-view.ts";
import { plain } from "../../terminal/plain.ts";
import { facts, table, truncate } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends RunsOptions, FormatOptions {
  readonly components?: boolean;
}

const MAX_ROWS = 30;
const MAX_VALUE = 40;

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("compare two runs task by task")
    .description(
      "Compares two runs: which settings differ, the mean reward of each task that both have scored, their numbers, and the mean difference with its interval.",
    )
    .argument("<run>", "the name of the first run, or its folder")
    .argument("<other>", "the name of the second run, or its folder")
    .option("--components", "also compare the parts of the reward");
  addRunsOption(addOutputOption(command))
    .addHelpText("after", examples("aenv runs compare before after", "aenv runs compare before after --components"))
    .action((one: string, other: string, options: Options) => compare(one, other, options, terminal));
}

async function compare(one: string, other: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const [first, second] = await Promise.all([read(getRun(one, options, terminal)), read(getRun(other, options, terminal))]);
  const shared = [...first.means].flatMap(([task, mean]) => {
    const otherMean = second.means.get(task);
    return otherMean === undefined ? [] : [{ task, first: mean, second: otherMean, difference: otherMean - mean }];
  });
  // Paired by task: what makes a task hard is in both means and cancels out.
  const difference = meanOfGroups(shared.map((row) => [row.difference]));
  const settings = settingsThatDiffer(first.settings, second.settings);
  printer.json({ tasks: shared, difference, settings, first: first.summary, second: second.summary });
  if (printer.isJson) return;
  const { output } = printer;
  if (settings.length > 0) {
    const shown = (value: unknown) => truncate(typeof value === "string" ? value : (JSON.stringify(value) ?? "-"), MAX_VALUE);
    const rows = settings.map(({ path, expected, actual }) => [path, shown(expected), shown(actual)]);
    printer.print(table(["setting that differs", one, other], rows, output));
  }
  const changed = shared.filter((row) => row.difference !== 0).sort((a, b) => a.difference - b.difference);
  const colored = (value: number) => (value < 0 ? output.colors.red(signed(value)) : output.colors.green(signed(value)));
  const rows = changed.slice(0, MAX_ROWS).map((row) => [row.task, row.first.toFixed(3), row.second.toFixed(3), colored(row.difference)]);
  if (rows.length > 0) printer.print(table(["task", one, other, "difference"], rows, output));
  if (changed.length > MAX_ROWS) printer.print(`  ${output.colors.dim(`and ${changed.length - MAX_ROWS} more tasks; all with --json`)}`);
  printer.print(table(["", one, other], numbersOf(first, second), output));
  const roles = rolesOf(first.summary, second.summary).map(([name, a, b]) => [
    name,
    a?.toFixed(3) ?? "-",
    b?.toFixed(3) ?? "-",
    a === undefined || b === undefined ? "" : colored(b - a),
  ]);
  if (roles.length > 0) printer.print(table(["role", one, other, "difference"], roles, output));
  if (options.components) {
    const parts = componentsOf(first.summary, second.summary).map(([name, a, b]) => [
      plain(name),
      a?.toFixed(3) ?? "-",
      b?.toFixed(3) ?? "-",
      a === undefined || b === undefined ? "" : colored(b - a),
    ]);
    if (parts.length > 0) printer.print(table(["component", one, other, "difference"], parts, output));
  }
  const only = new Set([...first.means.keys(), ...second.means.keys()]).size - shared.length;
  const lines: [string, string | null][] = [
    ["tasks in both", `${shared.length}, ${changed.length} changed${only === 0 ? "" : `; ${only} scored in one run only are left out`}`],
    ["mean difference", `${meanText(difference)}${verdict(difference)}`],
  ];
  printer.print(facts(lines, output));
}

interface ReadRun {
  readonly settings: RunSettings | null;
  /** The mean reward of each task that has a score. */
  readonly means: ReadonlyMap<string, number>;
  readonly summary: Omit<RunSummary, "tasks">;
}

async function read(run: RunFolder): Promise<ReadRun> {
  const settings = run.settings();
  const scores: EpisodeScore[] = [];
  for await (const trajectory of run.trajectories()) scores.push(scoreOf(trajectory));
  const { tasks, ...summary } = summarise(scores, { passReward: settings?.pass_reward ?? 1 });
  return { settings, means: new Map(tasks.flatMap(({ task, mean }) => (mean === null ? [] : [[task, mean]]))), summary };
}

/** Tasks are compared one by one, and where a project was makes no difference. */
function settingsThatDiffer(first: RunSettings | null, second: RunSettings | null): Difference[] {
  const own = (settings: RunSettings | null) => ({ ...settings, tasks: undefined, folder: undefined, format: undefined });
  return differences(own(first), own(second), MAX_ROWS);
}

function numbersOf(first: ReadRun, second: ReadRun): string[][] {
  const row = (title: string, value: (summary: ReadRun["summary"]) => string | null | undefined) => [
    title,
    value(first.summary) ?? "-",
    value(second.summary) ?? "-",
  ];
  const percent = (share: number | undefined) => (share === undefined ? null : `${(100 * share).toFixed(1)} %`);
  const rows = [
    row("scored", ({ scored, episodes }) => `${scored} of ${episodes}`),
    row("mean reward", ({ reward }) => (reward === null ? null : meanText(reward))),
    row("pass@1", ({ passAtK }) => percent(passAtK[1]?.value)),
    row("cost", ({ cost }) => cost && moneyText(cost.total)),
    row("cost per pass", ({ cost }) => (cost?.perPass ? moneyText(cost.perPass) : null)),
    row("median time", ({ seconds }) => seconds && `${seconds.median.toFixed(2)} s`),
  ];
  return rows.filter(([, ...values]) => values.some((value) => value !== "-"));
}

/** The mean reward of each role in either run; none without roles. */
function rolesOf(first: ReadRun["summary"], second: ReadRun["summary"]): [name: string, number | undefined, number | undefined][] {
  const names = [...new Set([first, second].flatMap(({ roles = {} }) => Object.keys(roles)))];
  return names.map((name) => [name, first.roles?.[name]?.reward?.mean, second.roles?.[name]?.reward?.mean]);
}

/** The mean of each part of the reward in either run. */
function componentsOf(first: ReadRun["summary"], second: ReadRun["summary"]): [name: string, number | undefined, number | undefined][] {
  const names = [...new Set([first, second].flatMap(({ components = {} }) => Object.keys(components)))].sort();
  return names.map((name) => [name, first.components?.[name]?.mean, second.components?.[name]?.mean]);
}

/** Whether chance alone may explain a difference. */
function verdict(difference: MeanWithInterval | null): string {
  if (difference === null || difference.low === null || difference.high === null) return "";
  return difference.low <= 0 && difference.high >= 0 ? "; it may be chance" : "";
}

function signed(value: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(3)}`;
}
