import { relative } from "node:path";
import type { Provenance, Trajectory } from "@aenv/contract";
import {
  beginEpisode,
  comparable,
  type Difference,
  type Drift,
  differences,
  digestOf,
  driftOf,
  planEpisodes,
  RunFolder,
  type RunSettings,
  type RunSummary,
} from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import type { Command } from "commander";
import { dataOfRun } from "../bench/run-data.ts";
import { examples } from "../options/examples.ts";
import { integer } from "../options/values.ts";
import { addPlatformOptions } from "../platform/platform.ts";
import { agentOfRun } from "../rollout/agent-of-run.ts";
import type { ChosenAgent } from "../rollout/chosen-agent.ts";
import { choosePlayers } from "../rollout/chosen-players.ts";
import { deadlineOption } from "../rollout/deadline-option.ts";
import { provenanceOf } from "../rollout/episodes.ts";
import { playShown } from "../rollout/played-run.ts";
import { howOf } from "../rollout/rollout.ts";
import { addRunsOption, getRun, type RunsOptions } from "../rollout/run-option.ts";
import { openRunSource, settingsOn } from "../rollout/run-source.ts";
import { addSourceOptions, type Source, type SourceOptions } from "../rollout/source.ts";
import { meanText } from "../rollout/summary-view.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter, type Printer } from "../terminal/printer.ts";
import { facts, table, truncate } from "../terminal/table.ts";
import type { Output, Terminal } from "../terminal/terminal.ts";

interface Options extends RunsOptions, SourceOptions {
  readonly environment?: string;
  readonly run?: string;
  readonly anyway?: boolean;
  readonly baseUrl?: string;
  readonly modelKey?: string;
  readonly concurrency: number;
  readonly retries: number;
  readonly deadline: number;
  readonly json?: boolean;
}

const MAX_VALUE = 40;
/** Agents that do the same in the same episode each time. */
const DETERMINISTIC: ReadonlySet<string> = new Set(["oracle", "noop", "random", "scripted", "replay"]);

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Plays a run again with the settings that it was played with. First it says what has changed since: code, tools, rewards, config, agent, model, engine or server. If something that decides the episodes has changed, nothing is played unless --anyway is given. With an agent that does the same each time, the trajectories are compared. Exits with 1 if something differs.",
    )
    .argument("<run>", "the name of the run, or its folder")
    .option("--environment <environment>", "a folder, a built-in environment, or name@version; the run's own if not given")
    .option("--run <name>", "the name of the new run; made of the old one if not given")
    .option("--anyway", "play it also if something has changed")
    .option("--base-url <url>", "the model's endpoint; the run's own if not given")
    .option("--model-key <key>", "the key for the endpoint; $OPENAI_API_KEY or $ANTHROPIC_API_KEY if not given")
    .option("-c, --concurrency <number>", "episodes at the same time", integer(1, 100_000), 16)
    .option("--retries <number>", "further attempts after a failure that may pass", integer(0, 100), 2)
    .addOption(deadlineOption());
  addSourceOptions(command, "a variable for the instances besides those of the run, such as a secret one").option(
    "--json",
    "print the result as JSON",
  );
  addPlatformOptions(addRunsOption(command))
    .addHelpText("after", examples("aenv reproduce NAME", "aenv reproduce NAME --anyway", "aenv reproduce NAME --environment ./my-env"))
    .action((named: string, options: Options) => reproduce(named, options, terminal));
}

async function reproduce(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const stop = terminal.stopSignal();
  const run = getRun(named, options, terminal);
  const old = run.settings() as RunSettings;
  if (old.rescored_from !== undefined) {
    throw new Failure(`run '${run.name}' was made by rescoring '${old.rescored_from}'; it was never played`, {
      exit: "usage",
      hint: `Rescore again with: aenv rescore ${old.rescored_from} --reward-from ${old.environment}`,
    });
  }
  const first = await firstWhole(run);
  const how = howOf(options);
  const { agent, program } = agentOfRun(old);
  const endpoint = {
    ...(options.baseUrl !== undefined && { baseUrl: options.baseUrl }),
    ...(options.modelKey !== undefined && { modelKey: options.modelKey }),
  };
  await using chosen = await choosePlayers({ ...agent, ...endpoint, runs: options.runs }, program, terminal, how.concurrency.noteBusy);
  const data = await dataOfRun(old, options, terminal);
  await using source = await openRunSource(old, options.environment, { ...options, ...data }, terminal);
  const { name, settings: agentSettings } = chosen.agent;
  const settings: RunSettings = { ...settingsOn(source, old), agent: { name, settings: { ...agentSettings } } };
  const drift = [...driftOf(first.provenance, await provenanceNow(first, source, settings, stop)), ...seedDrift(run.name, first, settings)];
  const isDrifted = drift.some(({ isEssential }) => isEssential);
  printer.print(driftText(drift, printer.output));
  if (isDrifted && options.anyway !== true) {
    printer.json({ run: run.name, drift, reproduced: null });
    if (printer.isJson) throw new Failure([]);
    throw new Failure("the run cannot be reproduced: what it was played with has changed", {
      code: "reproduce.drifted",
      hint: "Restore the versions above, or play it with the new ones: --anyway",
    });
  }

  const folder = options.run === undefined ? nextFolder(run) : new RunFolder(run.parent, options.run);
  const { isComplete, summary } = await playShown({ folder, settings, source, chosen, ...how, cancel: stop }, terminal);
  if (!isComplete) throw new Failure("stopped", { exit: "cancelled", hint: "The same command goes on." });
  const place = relative(terminal.cwd, folder.path);
  const compared = await compareRuns(run, folder);
  const isDeterministic = agentNamesOf(chosen).every((name) => DETERMINISTIC.has(name));
  printer.json({ run: run.name, drift, reproduced: folder.name, folder: folder.path, isDeterministic, ...compared, summary });
  printer.print(comparedText(compared, run.summary(), summary, printer));
  printer.print(`\n${printer.output.colors.green("✔")} The new run: ${printer.output.colors.cyan(place)}`);
  if (compared.equal === compared.compared || !isDeterministic) return;
  if (printer.isJson) throw new Failure([]);
  throw new Failure(`${compared.compared - compared.equal} of ${compared.compared} trajectories differ`, {
    code: "reproduce.different",
    hint: "The environment does not do the same each time, or something changed that is not recorded. Find the step with: aenv replay",
  });
}

function agentNamesOf({ agent, players }: Pick<ChosenAgent, "agent" | "players">): readonly string[] {
  return players === undefined ? [agent.name] : Object.values(players.roles).flatMap((all) => all.map((one) => one.agent.name));
}

/** The first trajectory that knows its tools: one that failed at its start says little about what made it. */
async function firstWhole(run: RunFolder): Promise<Trajectory> {
  let first: Trajectory | undefined;
  for await (const one of run.trajectories()) {
    first ??= one;
    if (one.outcome.kind === "scored") return one;
  }
  if (first !== undefined) return first;
  throw new Failure(`run '${run.name}' has no trajectories`, { exit: "usage", hint: "Play it with: aenv rollout" });
}

/** The provenance that the same episode would have now. */
async function provenanceNow(
  { task, seed }: Trajectory,
  source: Source,
  settings: RunSettings,
  signal: AbortSignal,
): Promise<Partial<Provenance>> {
  const known = provenanceOf(source, settings.agent, settings.limits, settings.model);
  return Environment.use(
    source.environment,
    { ...source.options, ...(task.id !== null && { task: task.id }), seed, signal },
    async (instance) => {
      const now = () => performance.now();
      const episode = await beginEpisode({ instance, task: task.id, seed, limits: {}, signal, recordsDigests: false, now });
      const { engine = null, isolation = null, serverVersion = null } = instance.runtime ?? {};
      return {
        ...known,
        tools_digest: episode.tools.length === 0 ? null : digestOf(episode.tools),
        reward_digest: episode.rewardDigest,
        engine,
        isolation,
        server_version: serverVersion,
      };
    },
  );
}

/** Seeds are made of the settings; another version of this command could make others. */
function seedDrift(run: string, { id, seed }: Trajectory, settings: RunSettings): Drift[] {
  const planned = [...planEpisodes({ run, ...settings })].find((one) => one.id === id);
  if (planned === undefined || planned.seed === seed) return [];
  return [{ field: `seed of ${id}`, recorded: String(seed), now: String(planned.seed), isEssential: true }];
}

interface Compared {
  readonly compared: number;
  readonly equal: number;
  /** Unscored in one of the runs. */
  readonly unscored: number;
  readonly first: { readonly id: string; readonly differences: readonly Difference[] } | null;
}

async function compareRuns(run: RunFolder, other: RunFolder): Promise<Compared> {
  const nameOf = ({ id }: Trajectory) => id.slice(id.lastIndexOf("/") + 1);
  // Digests, so that a run of any size fits into memory.
  const digests = new Map<string, string>();
  for await (const one of run.trajectories()) if (one.outcome.kind === "scored") digests.set(nameOf(one), digestOf(comparable(one)));
  let [compared, equal, unscored] = [0, 0, 0];
  let different: Trajectory | null = null;
  for await (const one of other.trajectories()) {
    const digest = digests.get(nameOf(one));
    if (digest === undefined || one.outcome.kind === "unscored") {
      unscored++;
      continue;
    }
    compared++;
    if (digest === digestOf(comparable(one))) equal++;
    else if (different === null || nameOf(one) < nameOf(different)) different = one;
  }
  return { compared, equal, unscored, first: different === null ? null : await differencesTo(run, different, nameOf(different)) };
}

async function differencesTo(run: RunFolder, actual: Trajectory, name: string): Promise<Compared["first"]> {
  for await (const one of run.trajectories()) {
    if (one.id.endsWith(`/${name}`)) return { id: name, differences: differences(comparable(one), comparable(actual), 5) };
  }
  return null;
}

function driftText(drift: readonly Drift[], output: Output): string {
  const { colors } = output;
  if (drift.length === 0) return `${colors.green("✔")} Nothing that is recorded has changed.`;
  const rows = drift.map(({ field, recorded, now, isEssential }) => [
    isEssential ? colors.red(field) : field,
    truncate(recorded, MAX_VALUE),
    truncate(now ?? "nothing", MAX_VALUE),
  ]);
  return table(["changed", "recorded", "now"], rows, output);
}

function comparedText(compared: Compared, before: RunSummary | null, after: RunSummary, { output }: Printer): string {
  const { equal, unscored, first } = compared;
  const lines: [string, string | null][] = [
    ["equal", `${equal} of ${compared.compared} trajectories`],
    ["not compared", unscored === 0 ? null : `${unscored}, unscored in one of the runs`],
    ["mean reward then", before === null ? null : meanText(before.reward)],
    ["mean reward now", meanText(after.reward)],
  ];
  if (first === null) return facts(lines, output);
  const shown = (value: unknown) => truncate(JSON.stringify(value) ?? "nothing", MAX_VALUE);
  const [difference] = first.differences;
  const where = difference === undefined ? "" : `: ${difference.path}`;
  const values = difference === undefined ? "" : `\n    recorded  ${shown(difference.expected)}\n    now       ${shown(difference.actual)}`;
  return `${facts([...lines, ["first difference", `${first.id}${where}`]], output)}${values}`;
}

/** A run of the same name with the next free number; one that was stopped is gone on with. */
function nextFolder(run: RunFolder): RunFolder {
  for (let number = 1; ; number++) {
    const folder = new RunFolder(run.parent, `${run.name}-reproduced-${number}`);
    if (folder.summary() === null) return folder;
  }
}
