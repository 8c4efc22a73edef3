import { relative, resolve } from "node:path";
import type { Task } from "@aenv/contract";
import { Concurrency, RunFolder, type RunResult, type RunSettings, runNameOf, withoutSecrets } from "@aenv/rollout";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { facts } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { checkPlayers, choosePlayers } from "./chosen-players.ts";
import { limitsOf } from "./limit-options.ts";
import { playShown, type RunToPlay } from "./played-run.ts";
import { pricesOf } from "./price-options.ts";
import type { RolloutOptions, RunOptions } from "./rollout-options.ts";
import { openSource, type Source } from "./source.ts";
import { summaryText } from "./summary-view.ts";
import { listTasks } from "./task-choice.ts";

/** What a command does with a run besides playing it. */
export interface RunExtras {
  /** Called before anything is played. */
  prepare?(source: Source, tasks: readonly Task[]): Promise<void>;
  /** Settings that also decide what the episodes are. */
  readonly settings?: Partial<RunSettings>;
  /** Opened when the run is known, and told of all its episodes, those of earlier calls first. */
  open?(folder: RunFolder, settings: RunSettings): Promise<RunListener | undefined>;
}

export interface RunListener {
  readonly onEpisode: NonNullable<RunToPlay["onEpisode"]>;
  /** Called after the last episode; what is shown with the numbers of the run. */
  end(): Promise<readonly (readonly [name: string, value: string])[]>;
}

/** Plays an agent against the tasks of an environment, as the options say, and prints the numbers. */
export async function playRollout(
  named: string,
  program: readonly string[],
  options: RolloutOptions,
  terminal: Terminal,
  extras: RunExtras = {},
): Promise<void> {
  const cancel = terminal.stopSignal();
  const how = howOf(options);
  await using chosen = await choosePlayers(options, program, terminal, how.concurrency.noteBusy);
  const prices = chosen.players === undefined ? pricesOf(options, chosen.modelName, terminal) : null;
  await using source = await openSource(named, options, terminal);
  await checkPlayers(source, chosen.players, terminal);
  const tasks = await listTasks(source, options, terminal);
  await extras.prepare?.(source, tasks);
  const settings = { ...settingsOf(source, chosen.agent, chosen.modelName, tasks, options), ...extras.settings };
  const folder = runFolderOf(settings, options, terminal);
  const listener = await extras.open?.(folder, settings);
  const run = { folder, settings, source, chosen, ...how, prices, cancel, ...(listener && { onEpisode: listener.onEpisode }) };
  const result = await playShown(run, terminal);
  await report(result, folder, options, terminal, await listener?.end());
}

export function runFolderOf(settings: RunSettings, { runs, run }: Pick<RunOptions, "runs" | "run">, { cwd }: Terminal): RunFolder {
  return new RunFolder(resolve(cwd, runs), run ?? runNameOf(settings));
}

/** How the episodes of a run are played. */
export function howOf({
  concurrency: max,
  retries,
  retriesOf = {},
  deadline: deadlineMs,
  retryUnscored: playsUnscoredAgain = false,
}: Pick<RunOptions, "concurrency" | "retries" | "retriesOf" | "deadline" | "retryUnscored">) {
  return { concurrency: new Concurrency({ max }), retries, retriesOf, playsUnscoredAgain, deadlineMs };
}

/** Prints the numbers of a run. Throws if it was stopped, or if too many of its episodes are unscored. */
export async function report(
  { summary, isComplete, resumed, total }: RunResult,
  folder: RunFolder,
  options: Pick<RunOptions, "json" | "maxUnscored">,
  terminal: Terminal,
  more: readonly (readonly [name: string, value: string])[] = [],
): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const results = more.length > 0 ? { results: Object.fromEntries(more) } : {};
  printer.json({ run: folder.name, folder: folder.path, isComplete, resumed, ...summary, ...results });
  printer.print(summaryText(summary, printer.output));
  if (more.length > 0) printer.print(`\n${facts(more, printer.output)}`);
  printer.print();
  const { colors } = printer.output;
  const place = relative(terminal.cwd, folder.path);
  if (!isComplete) {
    const message = `stopped after ${summary.episodes} of ${total} episodes; they are in ${place}`;
    if (printer.isJson) throw new Failure([], { exit: "cancelled" });
    throw new Failure(message, { exit: "cancelled", hint: "The same command goes on with the run." });
  }
  const isOld = resumed === summary.episodes;
  printer.print(
    `${colors.green("✔")} ${isOld ? "The run was complete already, so nothing was played:" : "Trajectories and summary:"} ${colors.cyan(place)}`,
  );
  if (isOld) printer.print(colors.dim("  --run NAME plays it once more, under that name."));
  const unscored = summary.episodes - summary.scored;
  if (unscored > options.maxUnscored * summary.episodes) {
    if (printer.isJson) throw new Failure([]);
    throw new Failure(`${unscored} of ${summary.episodes} episodes are unscored, more than ${100 * options.maxUnscored} %`, {
      code: "run.unscored",
      hint: "The outcomes in the trajectories say why. Play them again with --retry-unscored, or set another share with --max-unscored.",
    });
  }
}

function settingsOf(
  source: Source,
  agent: { readonly name: string; readonly settings: Readonly<Record<string, unknown>> },
  model: string | null,
  tasks: readonly { readonly id: string; readonly split?: string | undefined }[],
  options: RolloutOptions,
): RunSettings {
  return {
    format: "aenv.run.v1",
    environment: source.environment,
    environment_digest: source.digest,
    variables: withoutSecrets(options.var ?? {}),
    agent: { name: agent.name, settings: { ...agent.settings } },
    model,
    split: options.split ?? null,
    tasks: tasks.map(({ id, split }) => ({ id, ...(split !== undefined && { split }) })),
    samples: options.samples,
    seed: options.seed,
    limits: limitsOf(options),
    ...(options.rewardArgs && { reward_args: options.rewardArgs }),
    records_digests: options.digests === true,
    pass_reward: options.passReward,
    ...(options.forkAt !== undefined && { fork_at: options.forkAt }),
    ...(source.folder !== null && { folder: source.folder }),
  };
}
