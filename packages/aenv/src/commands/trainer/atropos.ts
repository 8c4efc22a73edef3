import { createHash } from "node:crypto";
import { splitRef } from "@aenv/contract";
import { playEpisode } from "@aenv/rollout";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { collect } from "../../options/pairs.ts";
import { duration, integer, number } from "../../options/values.ts";
import { addPlatformOptions } from "../../platform/platform.ts";
import { addModelOptions, type ModelOptions } from "../../rollout/agent-options.ts";
import { chooseAgent } from "../../rollout/chosen-agent.ts";
import { deadlineOption } from "../../rollout/deadline-option.ts";
import { Episodes } from "../../rollout/episodes.ts";
import { addLimitOptions, type LimitOptions, limitsOf } from "../../rollout/limit-options.ts";
import { addSourceOptions, openSource, type SourceOptions } from "../../rollout/source.ts";
import { listTasks } from "../../rollout/task-choice.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { type EndedGroup, feedGroups } from "../../trainer/atropos.ts";
import { asFailure, trainerUrl } from "../../trainer/failure.ts";
import { TrainerHttp } from "../../trainer/http.ts";

interface Options extends LimitOptions, ModelOptions, SourceOptions {
  readonly url: string;
  readonly name?: string;
  readonly weight: number;
  readonly maxTokenLength?: number;
  readonly split?: string;
  readonly task?: readonly string[];
  readonly samples: number;
  readonly concurrency: number;
  readonly groups?: number;
  readonly maxBatches: number;
  readonly seed: number;
  readonly retries: number;
  readonly deadline: number;
  readonly poll: number;
  readonly json?: boolean;
}

const MOST = Number.MAX_SAFE_INTEGER;

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("push scored groups of episodes to Atropos")
    .description(
      "Registers as an environment of an Atropos server, plays groups of episodes against a model that returns token ids, and pushes each complete group. Episodes that are unscored are played again; a group that stays incomplete is left out. Ends when the trainer has its steps.",
    )
    .argument("<environment>", "a folder, a built-in environment such as echo, or name@version on a server")
    .requiredOption("--url <url>", "the Atropos server")
    .option("--name <name>", "the name to register; the environment's if not given")
    .option("--weight <number>", "the share of this environment in a batch, relative to the others", number(0, MOST), 1)
    .option("--max-token-length <number>", "the longest sequence; the trainer's if not given", integer(1, MOST))
    .option("--split <name>", "play the tasks of this split only")
    .option("-t, --task <id>", "play this task only; may be repeated", collect)
    .option("-n, --samples <number>", "episodes of a group", integer(1, 100_000), 8)
    .option("-c, --concurrency <number>", "groups at the same time", integer(1, 10_000), 4)
    .option("--groups <number>", "end after this many groups", integer(1, MOST))
    .option("--max-batches <number>", "wait while the trainer has this many batches that it has not used", number(0.01, MOST), 3)
    .option("--seed <number>", "the seed of all episodes", integer(0, MOST), 0)
    .option("--retries <number>", "further attempts for an episode that cannot be trained on", integer(0, 100), 2)
    .addOption(deadlineOption())
    .addOption(new Option("--poll <duration>", "how often it asks whether the trainer is ready").argParser(duration).default(1_000, "1s"));
  addLimitOptions(addModelOptions(command, "the model; its endpoint must return token ids, as vLLM and SGLang do"));
  addSourceOptions(command, "a variable for the instances; may be repeated").option("--json", "print a line of JSON for each group");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv trainer atropos shop@1.0.0 --url http://127.0.0.1:8000 --model M --base-url http://127.0.0.1:9001/v1",
        "aenv trainer atropos ./my-env --url http://127.0.0.1:8000 --model M --base-url http://127.0.0.1:9001/v1 -n 16 --split train",
      ),
    )
    .action((environment: string, options: Options) => feed(environment, options, terminal));
}

async function feed(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const api = new TrainerHttp(trainerUrl(options.url), null);
  const cancel = terminal.stopSignal();
  await using chosen = await chooseAgent({ ...options, agent: "openai", api: "chat", tokens: true }, [], terminal);
  await using source = await openSource(named, options, terminal);
  const tasks = await listTasks(source, options, terminal);
  if (tasks.length === 0 && (options.split !== undefined || options.task !== undefined))
    throw new Failure(`${source.environment} has none of the tasks that the options name`, { exit: "usage" });
  await using episodes = await Episodes.open({ source, limits: limitsOf(options) });
  const counts = { sent: 0, leftOut: 0 };
  printer.print(printer.output.colors.dim(`Playing ${source.environment} for ${api.url}. Ctrl-C stops.`));
  try {
    await feedGroups({
      api,
      name: options.name ?? splitRef(source.environment).name,
      weight: options.weight,
      maxTokenLength: options.maxTokenLength ?? null,
      tasks: tasks.length === 0 ? [null] : tasks.map(({ id }) => id),
      groupSize: options.samples,
      concurrency: options.concurrency,
      retries: options.retries,
      groups: options.groups ?? null,
      maxBatches: options.maxBatches,
      pollMs: options.poll,
      cancel,
      play: ({ task, group, index, epoch, attempt }, signal) =>
        playEpisode(
          {
            id: `${group}-${index}`,
            run: null,
            attempt,
            task: { id: task, split: options.split ?? null, index: null },
            group: { id: String(group), index, size: options.samples },
            seed: seedOf(options.seed, task, epoch, index, attempt),
            metadata: {},
          },
          episodes.optionsFor({ ...chosen, deadlineMs: options.deadline, cancel: signal }),
        ),
      onWaiting: (reason) => {
        printer.jsonLine({ event: "waiting", reason });
        printer.print(printer.output.colors.dim(`Atropos says: ${reason}`));
      },
      onEnded: (ended) => {
        counts[ended.leftOut === null ? "sent" : "leftOut"]++;
        printer.jsonLine({ event: "group", ...ended });
        if (!printer.isJson) printer.print(lineOf(ended, printer.output.colors));
      },
    });
  } catch (error) {
    throw asFailure(error, null);
  }
  printer.jsonLine({ event: "stopped", ...counts });
  printer.print(`${counts.sent} groups were sent, ${counts.leftOut} left out.`);
}

function lineOf({ group, task, rewards, leftOut }: EndedGroup, colors: Terminal["stdout"]["colors"]): string {
  const name = `group ${group}${task === null ? "" : `  ${task}`}`;
  if (leftOut !== null) return `${colors.yellow("!")} ${name}  left out: ${leftOut}`;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  return `${colors.green("✔")} ${name}  mean reward ${mean.toFixed(3)} of ${rewards.length}`;
}

function seedOf(...parts: readonly unknown[]): number {
  return createHash("sha256").update(JSON.stringify(parts)).digest().readUInt32BE(0) >>> 1;
}
