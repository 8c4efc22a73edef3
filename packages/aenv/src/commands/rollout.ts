import { relative, resolve } from "node:path";
import { type UnscoredCause, unscoredCauses } from "@aenv/contract";
import { RunFolder, type RunSettings, runNameOf, withoutSecrets } from "@aenv/rollout";
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples } from "../options/examples.ts";
import { collect, collectPair } from "../options/pairs.ts";
import { duration, integer, number } from "../options/values.ts";
import { addPlatformOptions } from "../platform/platform.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { type AgentOptions, addAgentOptions, chooseAgent } from "../rollout/agent-options.ts";
import { addEngineOption } from "../rollout/engine-option.ts";
import { addLimitOptions, type LimitOptions, limitsOf } from "../rollout/limit-options.ts";
import { BusySigns, playShown } from "../rollout/played-run.ts";
import { addPriceOptions, type PriceOptions, pricesOf } from "../rollout/price-options.ts";
import { listTasks, openSource, type Source, type SourceOptions } from "../rollout/source.ts";
import { summaryText } from "../rollout/summary-view.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends AgentOptions, LimitOptions, SourceOptions, PriceOptions {
  readonly split?: string;
  readonly task?: readonly string[];
  readonly samples: number;
  readonly forkAt?: number;
  readonly concurrency: number;
  readonly seed: number;
  readonly retries: number;
  readonly retriesOf?: RetriesOf;
  readonly retryUnscored?: boolean;
  readonly deadline: number;
  readonly digests?: boolean;
  readonly passReward: number;
  readonly maxUnscored: number;
  readonly run?: string;
  readonly runs: string;
  readonly json?: boolean;
}

type RetriesOf = Readonly<Partial<Record<UnscoredCause, number>>>;

const MOST = Number.MAX_SAFE_INTEGER;

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Plays an agent against the tasks of an environment and scores every episode. A folder or a built-in environment is played on a server inside of this command. The same command line goes on with a run that was stopped.",
    )
    .argument("<environment>", "a folder, a built-in environment such as echo, or name@version on a server")
    .argument("[command...]", "the program of the agent 'command', after --")
    .option("--split <name>", "play the tasks of this split only")
    .option("-t, --task <id>", "play this task only; may be repeated", collect)
    .option("-n, --samples <number>", "episodes of each task", integer(1, 1_000_000), 1)
    .option("--fork-at <number>", "make so many tool calls once for all samples of a task, then fork the episode", integer(0, MOST))
    .option("-c, --concurrency <number>", "episodes at the same time", integer(1, 100_000), 16)
    .option("--seed <number>", "the seed of the run", integer(0, MOST), 0)
    .option("--retries <number>", "further attempts after a failure that may pass", integer(0, 100), 2)
    .option(
      "--retries-of <CAUSE=NUMBER>",
      `another number for one cause: ${unscoredCauses.filter((cause) => cause !== "cancelled").join(", ")}; may be repeated`,
      collectRetries,
    )
    .option("--retry-unscored", "play again what has ended unscored in this run, also if it is complete");
  addLimitOptions(command)
    .addOption(
      new Option("--deadline <duration>", "how long an episode may take in all; a longer one is unscored")
        .argParser(duration)
        .default(30 * 60_000, "30m"),
    )
    .option("--digests", "record the digest of the state after every step, for aenv replay")
    .option("--pass-reward <number>", "a reward of at least this counts as passed", number(-MOST, MOST), 1)
    .option("--max-unscored <share>", "fail if more than this share of the episodes is unscored", number(0, 1), 0.05)
    .option("-e, --var <KEY=VALUE>", "a variable for the instances; may be repeated", collectPair)
    .option("--ttl <duration>", "the lifetime of an instance")
    .option("--run <name>", "the name of the run; made of its settings if not given")
    .option("--runs <folder>", "where runs are kept", "runs")
    .addOption(loadTimeoutOption())
    .option("--json", "print the summary as JSON");
  addPlatformOptions(addPriceOptions(addAgentOptions(addEngineOption(command))))
    .addHelpText(
      "after",
      examples(
        "aenv rollout echo",
        "aenv rollout ./my-env --agent random -n 100",
        "aenv rollout shop@1.0.0 --agent openai --model M --base-url http://127.0.0.1:8000/v1 --split train -n 8 --concurrency 256",
        "aenv rollout ./my-env --engine oci -c 4",
        "aenv rollout shop@1.0.0 --agent command --model M -- python agent.py",
      ),
    )
    .action((environment: string, program: string[], options: Options) => rollout(environment, program, options, terminal));
}

async function rollout(named: string, program: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const stop = terminal.stopSignal();
  const busy = new BusySigns();
  await using chosen = await chooseAgent(options, program, terminal, busy.notify);
  const prices = pricesOf(options, chosen.modelName, terminal);
  await using source = await openSource(named, options, terminal);
  const tasks = await listTasks(source, options, terminal);
  demandTasks(source, tasks, options);
  const settings = settingsOf(source, chosen.agent, chosen.modelName, tasks, options);
  const folder = new RunFolder(resolve(terminal.cwd, options.runs), options.run ?? runNameOf(settings));
  const { concurrency, retries, retriesOf = {}, deadline: deadlineMs, retryUnscored: playsUnscoredAgain = false } = options;
  const how = { concurrency, retries, retriesOf, playsUnscoredAgain, deadlineMs, prices, stop };
  const result = await playShown({ folder, settings, source, chosen, busy, ...how }, terminal);
  const { summary, isComplete, resumed } = result;
  printer.json({ run: folder.name, folder: folder.path, isComplete, resumed, ...summary });
  printer.print(summaryText(summary, printer.output));
  printer.print();
  const { colors } = printer.output;
  const place = relative(terminal.cwd, folder.path);
  if (!isComplete) {
    const message = `stopped after ${summary.episodes} of ${settings.samples * Math.max(1, tasks.length)} episodes; they are in ${place}`;
    if (printer.isJson) throw new Failure([], { exit: "cancelled" });
    throw new Failure(message, { exit: "cancelled", hint: "The same command goes on with the run." });
  }
  printer.print(
    `${colors.green("✔")} ${resumed === summary.episodes ? "The run was complete already:" : "Trajectories and summary:"} ${colors.cyan(place)}`,
  );
  const unscored = summary.episodes - summary.scored;
  if (unscored > options.maxUnscored * summary.episodes) {
    if (printer.isJson) throw new Failure([]);
    throw new Failure(`${unscored} of ${summary.episodes} episodes are unscored, more than ${100 * options.maxUnscored} %`, {
      code: "run.unscored",
      hint: "The outcomes in the trajectories say why. Play them again with --retry-unscored, or set another share with --max-unscored.",
    });
  }
}

/** `model=5`, for commander. */
function collectRetries(text: string, before: RetriesOf = {}): RetriesOf {
  const [name = "", count = ""] = text.split("=");
  const cause = unscoredCauses.find((one) => one === name);
  if (cause === undefined)
    throw new InvalidArgumentError(`Write a cause and a number, such as model=5; the causes are: ${unscoredCauses.join(", ")}.`);
  return { ...before, [cause]: integer(0, 100)(count) };
}

function settingsOf(
  source: Source,
  agent: { readonly name: string; readonly settings: Readonly<Record<string, unknown>> },
  model: string | null,
  tasks: readonly { readonly id: string; readonly split?: string | undefined }[],
  options: Options,
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
    records_digests: options.digests === true,
    pass_reward: options.passReward,
    ...(options.forkAt !== undefined && { fork_at: options.forkAt }),
    ...(source.folder !== null && { folder: source.folder }),
  };
}

/** Throws if the environment lacks a task or the split that the options name. */
function demandTasks({ environment }: Source, tasks: readonly { readonly id: string }[], { split, task = [] }: Options): void {
  const within = split === undefined ? "" : ` in the split '${split}'`;
  const missing = task.find((wanted) => !tasks.some(({ id }) => id === wanted));
  const problem =
    missing !== undefined
      ? `no task '${missing}'${within}`
      : split !== undefined && tasks.length === 0
        ? `no task of the split '${split}'`
        : null;
  if (problem === null) return;
  throw new Failure(`${environment} has ${problem}`, { exit: "usage", hint: "The tasks of a running environment: aenv call --tasks" });
}
