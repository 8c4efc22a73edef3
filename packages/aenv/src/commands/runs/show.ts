import { type RunFolder, scoreOf, summarise } from "@aenv/rollout";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { episodeText, findEpisode } from "../../rollout/episode-view.ts";
import { addRunsOption, getRun, type RunsOptions } from "../../rollout/run-option.ts";
import { summaryText } from "../../rollout/summary-view.ts";
import { page } from "../../terminal/pager.ts";
import { countText, facts } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends RunsOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("show the numbers of a run, or one of its episodes")
    .description(
      "Shows the settings and the numbers of a run, also while it is being played. With an episode, shows what was said and done in it, and how it was scored.",
    )
    .argument("<run>", "the name of the run, or its folder")
    .argument("[episode]", "a task and a sample, such as greet-0; the task alone is its first sample");
  addRunsOption(addOutputOption(command))
    .addHelpText(
      "after",
      examples("aenv runs show echo-1.0.0-oracle-8631b0d7", "aenv runs show ./runs/NAME --json", "aenv runs show NAME greet-0"),
    )
    .action((named: string, episode: string | undefined, options: Options) =>
      episode === undefined ? show(named, options, terminal) : showEpisode(named, episode, options, terminal),
    );
}

async function show(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const run = getRun(named, options, terminal);
  const settings = run.settings();
  const scores = [];
  for await (const trajectory of run.trajectories()) scores.push(scoreOf(trajectory));
  const summary = summarise(scores, { passReward: settings?.pass_reward ?? 1 });
  const isComplete = run.summary() !== null;
  const artifacts = run.artifacts.count() === 0 ? null : run.artifacts.path;
  printer.json({ name: run.name, folder: run.path, artifacts, isComplete, settings, summary });
  if (printer.isJson) return;
  printer.print(summaryText(summary, printer.output));
  const rows: [string, string | null | undefined][] = [
    ["environment", settings?.environment],
    ["digest", settings?.environment_digest],
    ["variables", pairsText(settings?.variables ?? {})],
    ["agent", settings?.agent.name],
    ["model", settings?.model],
    ["limits", pairsText(settings?.limits ?? {})],
    ["seed", String(settings?.seed ?? "")],
    ["forked", settings?.fork_at === undefined ? null : `after ${settings.fork_at} tool calls`],
    ["artifacts", artifactsText(run)],
    ["rescored from", settings?.rescored_from],
    ["state", isComplete ? "complete" : "not complete"],
  ];
  printer.print(`\n${facts(rows, printer.output)}`);
}

async function showEpisode(named: string, wanted: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const episode = await findEpisode(getRun(named, options, terminal), wanted);
  printer.json(episode);
  if (!printer.isJson) await page(episodeText(episode, printer.output), terminal);
}

function artifactsText({ artifacts }: RunFolder): string | null {
  const count = artifacts.count();
  return count === 0 ? null : `${artifacts.path}, of ${countText(count, "episode")}`;
}

function pairsText(pairs: object): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
