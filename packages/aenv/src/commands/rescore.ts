import { relative } from "node:path";
import type { Outcome } from "@aenv/contract";
import {
  Concurrency,
  canBeRescored,
  digestOf,
  divergenceText,
  InstancePool,
  type Rescored,
  RunFolder,
  type RunSettings,
  readRescored,
  rescoreRun,
  withoutSecrets,
} from "@aenv/rollout";
import type { Command } from "commander";
import { dataOfRun } from "../bench/run-data.ts";
import { examples } from "../options/examples.ts";
import { integer } from "../options/values.ts";
import { addPlatformOptions } from "../platform/platform.ts";
import { deadlineOption } from "../rollout/deadline-option.ts";
import { sourceConfigDigestOf } from "../rollout/episodes.ts";
import { LiveView } from "../rollout/live-view.ts";
import { addRunsOption, getRun, type RunsOptions } from "../rollout/run-option.ts";
import { openRunSource, settingsOn } from "../rollout/run-source.ts";
import { addSourceOptions, type SourceOptions } from "../rollout/source.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { countText, facts, table } from "../terminal/table.ts";
import type { Output, Terminal } from "../terminal/terminal.ts";

interface Options extends RunsOptions, SourceOptions {
  readonly rewardFrom: string;
  readonly run?: string;
  readonly concurrency: number;
  readonly retries: number;
  readonly deadline: number;
  readonly json?: boolean;
}

/** What became of a trajectory. */
type Change = "same" | "changed" | "now passed" | "now failed" | "newly scored" | "diverged" | "unscored";

const MAX_ROWS = 30;

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Scores the trajectories of a run with another version of the environment, and shows what changes. The actions are played again on fresh instances of that version. A trajectory that it answers differently is reported and gets no score; the command exits with 1 then. The result is a run of its own.",
    )
    .argument("<run>", "the name of the run, or its folder")
    .requiredOption("--reward-from <environment>", "the other version: a folder, a built-in environment, or name@version on a server")
    .option("--run <name>", "the name of the new run; made of the old one and the version if not given")
    .option("-c, --concurrency <number>", "trajectories at the same time", integer(1, 100_000), 16)
    .option("--retries <number>", "further attempts after a failure that may pass", integer(0, 100), 2)
    .addOption(deadlineOption());
  addSourceOptions(command, "a variable for the instances besides those of the run; may be repeated").option(
    "--json",
    "print the result as JSON",
  );
  addPlatformOptions(addRunsOption(command))
    .addHelpText("after", examples("aenv rescore NAME --reward-from ./my-env", "aenv rescore NAME --reward-from shop@1.1.0"))
    .action((named: string, options: Options) => rescore(named, options, terminal));
}

async function rescore(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const stop = terminal.stopSignal();
  const from = getRun(named, options, terminal);
  const old = from.settings() as RunSettings;
  const data = await dataOfRun(old, options, terminal);
  await using source = await openRunSource(old, options.rewardFrom, { ...options, ...data }, terminal);
  const variables = withoutSecrets({ ...old.variables, ...options.var });
  const settings: RunSettings = { ...settingsOn(source, old), variables, rescored_from: from.name };
  const folder = new RunFolder(from.parent, options.run ?? nameOf(from.name, settings));
  await using instances = new InstancePool({
    environment: source.environment,
    environmentDigest: source.digest,
    options: source.options,
  });
  const view = new LiveView(terminal);
  const { isComplete, summary } = await rescoreRun({
    from,
    folder,
    settings,
    concurrency: new Concurrency({ max: options.concurrency }),
    retries: options.retries,
    deadlineMs: options.deadline,
    acquire: (trajectory, signal) => instances.acquire(trajectory, signal, options.deadline),
    configDigest: sourceConfigDigestOf(source),
    onProgress: (progress) => view.show(progress),
    cancel: stop,
    now: () => performance.now(),
  }).finally(() => view.end());
  if (!isComplete) throw new Failure("stopped", { exit: "cancelled", hint: "The same command goes on." });

  const rescored: (Rescored & { readonly change: Change })[] = [];
  for await (const trajectory of folder.trajectories()) {
    const one = readRescored(trajectory);
    if (one !== null) rescored.push({ ...one, change: changeOf(one, settings.pass_reward) });
  }
  rescored.sort((a, b) => (a.id < b.id ? -1 : 1));
  const counts = Object.fromEntries([...Map.groupBy(rescored, ({ change }) => change)].map(([change, all]) => [change, all.length]));
  const different = rescored.filter(({ change }) => change !== "same");
  printer.json({ run: folder.name, folder: folder.path, from: from.name, environment: source.environment, counts, different, summary });
  printer.print(reportText(different, counts, printer.output));
  printer.print(
    `\n${printer.output.colors.green("✔")} The rescored run: ${printer.output.colors.cyan(relative(terminal.cwd, folder.path))}`,
  );
  const lost = rescored.filter(({ before, after }) => after.kind === "unscored" && canBeRescored({ outcome: before })).length;
  if (lost === 0) return;
  if (printer.isJson) throw new Failure([]);
  throw new Failure(`${lost} of ${rescored.length} trajectories have no new score`, {
    code: "rescore.incomplete",
    hint: "They diverged or failed, as the table says. Play them with the new version: aenv rollout",
  });
}

function changeOf({ before, after, divergence }: Rescored, passReward: number): Change {
  if (divergence !== null) return "diverged";
  if (after.kind === "unscored") return "unscored";
  if (before.kind === "unscored") return "newly scored";
  const [was, is] = [before.reward >= passReward, after.reward >= passReward];
  if (was !== is) return is ? "now passed" : "now failed";
  return before.reward === after.reward && componentsText(before, after) === "" ? "same" : "changed";
}

function reportText(
  different: readonly (Rescored & { readonly change: Change })[],
  counts: Readonly<Record<string, number>>,
  output: Output,
): string {
  const { colors } = output;
  const colored = (change: Change) =>
    change === "now passed" ? colors.green(change) : change === "changed" || change === "newly scored" ? change : colors.red(change);
  const rows = different
    .slice(0, MAX_ROWS)
    .map(({ id, task, before, after, change, divergence }) => [
      task || "(no task)",
      id.slice(id.lastIndexOf("/") + 1),
      rewardText(before),
      rewardText(after),
      colored(change),
      divergence === null ? (after.kind === "unscored" ? after.message : componentsText(before, after)) : divergenceText(divergence),
    ]);
  const more = different.length > MAX_ROWS ? `\n  ${colors.dim(`and ${different.length - MAX_ROWS} more; all with --json`)}` : "";
  const shown = rows.length === 0 ? "" : `${table(["task", "sample", "old", "new", "change", "what changed"], rows, output)}${more}\n\n`;
  const lines = Object.entries(counts).map(([change, count]): [string, string] => [
    change,
    countText(count, "trajectory").replace("ys", "ies"),
  ]);
  return `${shown}${facts(lines, output)}`;
}

function rewardText(outcome: Outcome): string {
  return outcome.kind === "scored" ? outcome.reward.toFixed(3) : "unscored";
}

/** The components whose value changed, came or went. */
function componentsText(before: Outcome, after: Outcome): string {
  if (before.kind === "unscored" || after.kind === "unscored") return "";
  const names = new Set([...Object.keys(before.components), ...Object.keys(after.components)]);
  const shown = (value: number | undefined) => (value === undefined ? "none" : String(Number(value.toFixed(3))));
  return [...names]
    .filter((name) => before.components[name] !== after.components[name])
    .map((name) => `${name} ${shown(before.components[name])} → ${shown(after.components[name])}`)
    .join(", ");
}

function nameOf(from: string, settings: RunSettings): string {
  const { environment, environment_digest, variables } = settings;
  const version = environment.slice(environment.indexOf("@") + 1).replaceAll(/[^A-Za-z0-9.-]/g, "-");
  const digest = digestOf({ environment, environment_digest, variables }).slice("sha256:".length, "sha256:".length + 8);
  return `${from}-rescored-${version}-${digest}`;
}
