import { createHash } from "node:crypto";
import { ModelHttp, modelAgent, playEpisode } from "@aenv/rollout";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { duration, integer } from "../../options/values.ts";
import { addPlatformOptions } from "../../platform/platform.ts";
import { Episodes } from "../../rollout/episodes.ts";
import { addLimitOptions, type LimitOptions, limitsOf } from "../../rollout/limit-options.ts";
import { addSourceOptions, openSource, type SourceOptions } from "../../rollout/source.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { controlRollouts, type EndedRollout } from "../../trainer/agent-lightning.ts";
import { asFailure, trainerUrl } from "../../trainer/failure.ts";
import { TrainerHttp } from "../../trainer/http.ts";

interface Options extends LimitOptions, SourceOptions {
  readonly url: string;
  readonly key?: string;
  readonly concurrency: number;
  readonly retries: number;
  readonly poll: number;
  readonly untilIdle?: boolean;
  readonly json?: boolean;
}

/** The gateway tries a model server that fails several times by itself. */
const MODEL_RETRIES = 0;
const MODEL_TIMEOUT_MS = 30 * 60_000;

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("play the rollouts that Agent Lightning queues")
    .description(
      'Acts as a controller of Agent Lightning: takes queued rollouts whose input is {"task": "ID"}, plays each against the gateway\'s model, and reports the reward. An unscored episode is reported as failed, without a reward. Runs until Ctrl-C.',
    )
    .argument("<environment>", "a folder, a built-in environment such as echo, or name@version on a server")
    .requiredOption("--url <url>", "the server of Agent Lightning")
    .option("--key <key>", "the key for it; $AGL_KEY if not given")
    .option("-c, --concurrency <number>", "rollouts at the same time", integer(1, 100_000), 50)
    .option("--retries <number>", "further attempts after a failure that may pass", integer(0, 100), 1)
    .addOption(
      new Option("--poll <duration>", "how often it asks for queued rollouts while there are none")
        .argParser(duration)
        .default(1_000, "1s"),
    )
    .option("--until-idle", "end when no rollout is queued or running");
  addLimitOptions(command);
  addSourceOptions(command, "a variable for the instances; may be repeated").option("--json", "print a line of JSON for each rollout");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv trainer agent-lightning shop@1.0.0 --url http://127.0.0.1:8080",
        "aenv trainer agent-lightning ./my-env --url http://127.0.0.1:8080 --concurrency 200 --turns 20 --json",
      ),
    )
    .action((environment: string, options: Options) => control(environment, options, terminal));
}

async function control(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const cancel = terminal.stopSignal();
  const key = options.key ?? terminal.env.AGL_KEY ?? null;
  const api = new TrainerHttp(trainerUrl(options.url), key === "" ? null : key);
  await using source = await openSource(named, options, terminal);
  const http = new ModelHttp({ retries: MODEL_RETRIES, timeoutMs: MODEL_TIMEOUT_MS });
  await using episodes = await Episodes.open({ source, limits: limitsOf(options) });
  const counts = { scored: 0, failed: 0 };
  printer.print(printer.output.colors.dim(`Playing ${source.environment} for ${api.url}. Ctrl-C stops.`));
  try {
    await controlRollouts({
      api,
      concurrency: options.concurrency,
      retries: options.retries,
      pollMs: options.poll,
      untilIdle: options.untilIdle === true,
      cancel,
      play: ({ id, attempt, task, seed, modelUrl, timeoutMs }, signal) =>
        playEpisode(
          {
            id,
            run: null,
            attempt,
            task: { id: task, split: null, index: null },
            group: null,
            seed: seed ?? seedOf(id),
            metadata: {},
          },
          episodes.optionsFor({
            agent: modelAgent({ api: "chat", baseUrl: modelUrl, apiKey: key || "none", name: "default" }, http),
            upstream: null,
            modelName: null,
            deadlineMs: timeoutMs,
            cancel: signal,
          }),
        ),
      onEnded: (ended) => {
        counts[ended.outcome.kind === "scored" ? "scored" : "failed"]++;
        printer.jsonLine({ event: "rollout", ...ended });
        if (!printer.isJson) printer.print(lineOf(ended, printer.output.colors));
      },
    });
  } catch (error) {
    throw asFailure(error, "--key or AGL_KEY");
  } finally {
    await http.close();
  }
  printer.jsonLine({ event: "stopped", ...counts });
  printer.print(`${counts.scored} rollouts were scored, ${counts.failed} failed.`);
}

function lineOf({ id, task, outcome }: EndedRollout, colors: Terminal["stdout"]["colors"]): string {
  const name = `${id}${task === null ? "" : `  ${task}`}`;
  if (outcome.kind === "scored") return `${colors.green("✔")} ${name}  reward ${outcome.reward.toFixed(3)}`;
  const why = outcome.kind === "refused" ? outcome.message : `unscored by ${outcome.cause}: ${outcome.message}`;
  return `${colors.yellow("!")} ${name}  ${why}`;
}

/** The same rollout is played with the same seed again. */
function seedOf(id: string): number {
  return createHash("sha256").update(id).digest().readUInt32BE(0) >>> 1;
}
