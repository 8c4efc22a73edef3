import { type UnscoredCause, unscoredCauses } from "@aenv/contract";
import { type Command, InvalidArgumentError } from "commander";
import { collect, collectPair } from "../options/pairs.ts";
import { integer, jsonObject, number } from "../options/values.ts";
import { addPlatformOptions } from "../platform/platform.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { type AgentOptions, addAgentOptions } from "./agent-options.ts";
import { deadlineOption } from "./deadline-option.ts";
import { addEngineOption } from "./engine-option.ts";
import { addLimitOptions, type LimitOptions } from "./limit-options.ts";
import { addPlayerOptions, type PlayerOptions } from "./player-options.ts";
import { addPriceOptions, type PriceOptions } from "./price-options.ts";
import type { SourceOptions } from "./source.ts";

/** Which tasks are played or graded, how often, and where the run is kept. */
export interface RunOptions extends SourceOptions {
  readonly task?: readonly string[];
  readonly concurrency: number;
  readonly retries: number;
  readonly retriesOf?: RetriesOf;
  readonly retryUnscored?: boolean;
  readonly deadline: number;
  readonly passReward: number;
  readonly maxUnscored: number;
  readonly run?: string;
  readonly runs: string;
  readonly json?: boolean;
}

/** The options of commands that play an agent. */
export interface RolloutOptions extends RunOptions, AgentOptions, PlayerOptions, LimitOptions, PriceOptions {
  readonly split?: string;
  readonly samples: number;
  readonly forkAt?: number;
  readonly seed: number;
  readonly rewardArgs?: Record<string, unknown>;
  readonly digests?: boolean;
}

type RetriesOf = Readonly<Partial<Record<UnscoredCause, number>>>;

const MOST = Number.MAX_SAFE_INTEGER;

/** All options of a command that plays an agent. */
export function addRolloutOptions(command: Command): Command {
  command
    .option("--split <name>", "play the tasks of this split only")
    .option("-t, --task <id>", "play this task only; may be repeated", collect)
    .option("-n, --samples <number>", "episodes of each task", integer(1, 1_000_000), 1)
    .option("--fork-at <number>", "make so many tool calls once for all samples of a task, then fork the episode", integer(0, MOST))
    .option("--seed <number>", "the seed of the run", integer(0, MOST), 0)
    .option("--reward-args <json>", "arguments of the reward, as one JSON object", jsonObject)
    .option("--digests", "record the digest of the state after every step, for aenv replay");
  addRunOptions(addLimitOptions(command), 16);
  return addPlatformOptions(addPriceOptions(addPlayerOptions(addAgentOptions(command))));
}

/** How the episodes of a run are played, by any agent. */
export function addRunOptions(command: Command, concurrency: number): Command {
  command
    .option("-c, --concurrency <number>", "episodes at the same time", integer(1, 100_000), concurrency)
    .option("--retries <number>", "further attempts after a failure that may pass", integer(0, 100), 2)
    .option(
      "--retries-of <CAUSE=NUMBER>",
      `another number for one cause: ${unscoredCauses.filter((cause) => cause !== "cancelled").join(", ")}; may be repeated`,
      collectRetries,
    )
    .option("--retry-unscored", "play again what has ended unscored in this run, also if it is complete")
    .addOption(deadlineOption())
    .option("--pass-reward <number>", "a reward of at least this counts as passed", number(-MOST, MOST), 1)
    .option("--max-unscored <share>", "fail if more than this share of the episodes is unscored", number(0, 1), 0.05)
    .option("-e, --var <KEY=VALUE>", "a variable for the instances; may be repeated", collectPair)
    .option("--ttl <duration>", "the lifetime of an instance")
    .option("--run <name>", "the name of the run; made of its settings if not given")
    .option("--runs <folder>", "where runs are kept", "runs")
    .addOption(loadTimeoutOption())
    .option("--json", "print the summary as JSON");
  return addEngineOption(command);
}

/** `model=5`, for commander. */
function collectRetries(text: string, before: RetriesOf = {}): RetriesOf {
  const [name = "", count = ""] = text.split("=");
  const cause = unscoredCauses.find((one) => one === name);
  if (cause === undefined)
    throw new InvalidArgumentError(`Write a cause and a number, such as model=5; the causes are: ${unscoredCauses.join(", ")}.`);
  return { ...before, [cause]: integer(0, 100)(count) };
}
