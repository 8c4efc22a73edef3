import { once } from "node:events";
import { formatRef, type InstanceRecord } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { collect, collectMount, collectPair } from "../../options/pairs.ts";
import { duration, egress, integer } from "../../options/values.ts";
import { createMany } from "../../platform/instance-batch.ts";
import { environmentOptions, type StartOptions, stoppedBefore } from "../../platform/instance-start.ts";
import { instanceFacts, usageLines } from "../../platform/instance-view.ts";
import { addPlatformOptions, callServer, nextCommand, openPlatform, type Platform, type PlatformOptions } from "../../platform/platform.ts";
import { readProject } from "../../project/project.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions, StartOptions {
  readonly count?: number;
  readonly keepAlive?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("start an instance, and delete it when the command ends")
    .description(
      "Starts an instance of a published environment and shows how to reach it. Ctrl-C or the end of stdin releases it. With --keep-alive it keeps running after this command.",
    )
    .argument("[environment]", "name or name@version; that of ./config.json if not given")
    .option("-t, --ttl <duration>", "its lifetime, e.g. 1h30m; that of its config.json if not given, else 30m")
    .option("-e, --env <KEY=VALUE>", "a variable for it; may be repeated", collectPair)
    .option("-a, --arg <argument>", "an argument for it; may be repeated", collect)
    .option("-d, --datasource <name>", "the data source, for environments that have one")
    .option("--owner <owner>", "its owner, if the server needs no token; the setting owner if not given")
    .option("-l, --label <KEY=VALUE>", "a label to find it by; may be repeated", collectPair)
    .option("--task <id>", "the task of its first episode")
    .option("--seed <number>", "the seed of its first episode", integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER))
    .option("--snapshot <name>", "start from this stored snapshot, by name or id; see: aenv snapshot list")
    .option(
      "--egress <destinations>",
      "where it may connect to, within what the environment allows: none, open, or a list such as a.com:443,*.b.org",
      egress,
    )
    .option("--secret <VARIABLE=NAME>", "a variable that gets the value of your secret of this name; may be repeated", collectPair)
    .option("--mount <KEY=VALUE,...>", "storage to mount, e.g. remote_dir=/sets/a,local_dir=/data; may be repeated", collectMount)
    .option("--init-command <command>", "the command of its sandbox, instead of that of its image")
    .option("-c, --count <number>", "start this many instances with one request, and print a table", integer(1, 10_000))
    .option("--keep-alive", "keep it running after this command")
    .option("--skip-health", "do not wait until it is healthy, if the server does not do that itself")
    .addOption(new Option("--timeout <duration>", "timeout of a request").argParser(duration).default(60_000, "1m"))
    .addOption(new Option("--startup-timeout <duration>", "timeout of the start").argParser(duration).default(500_000, "8m20s"))
    .option("--max-retries <number>", "how often an idempotent request is retried", integer(0, 100), 2);
  addPlatformOptions(addOutputOption(command))
    .addHelpText(
      "after",
      examples(
        "aenv instance create my-env",
        "aenv instance create my-env@1.0.0 --ttl 2h --env DEBUG=1 --task t1 --seed 7",
        "aenv instance create my-env --keep-alive --output json",
        "aenv instance create my-env --snapshot prepared",
        "aenv instance create my-env --egress none --secret API_KEY=weather-key",
        "aenv instance create my-env --count 32 --keep-alive",
      ),
    )
    .action((ref: string | undefined, options: Options) => create(ref, options, terminal));
}

async function create(given: string | undefined, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { colors } = printer.output;
  const ref = given ?? formatRef(readProject(".", terminal.cwd).config);
  const platform = openPlatform(options, terminal, { timeoutMs: options.timeout, maxRetries: options.maxRetries });
  const stop = terminal.stopSignal();
  if (options.count !== undefined) {
    const all = { ...options, count: options.count, signal: stop };
    return createMany(ref, all, platform, terminal, () => untilStopped(stop));
  }
  const record = await start(ref, platform, options, stop, terminal);
  const isKept = options.keepAlive === true;
  printer.json(record);
  printer.print(`${colors.green("✔")} ${colors.bold(ref)} is running`);
  printer.print();
  printer.print(instanceFacts(record, printer.output));
  printer.print();
  for (const line of usageLines(record, printer.output)) printer.print(line);
  printer.print();
  if (isKept) {
    printer.print(`  ${colors.dim("Delete it with:")} ${nextCommand(`aenv instance delete ${record.id}`, options, colors)}`);
    return;
  }
  printer.print(colors.dim("Ctrl-C releases it."));
  await untilStopped(stop);
  await callServer(terminal, "Releasing it", () => platform.scheduler.deleteInstance(record.id));
  printer.print(`${colors.green("✔")} ${record.id} is released`);
}

/** If the start is aborted, the instance is released. */
async function start(ref: string, platform: Platform, options: Options, signal: AbortSignal, terminal: Terminal): Promise<InstanceRecord> {
  const environment = new Environment(ref, environmentOptions(options, platform, terminal));
  try {
    return await callServer(terminal, `Starting ${ref}`, async () => {
      await environment.initialize({ signal });
      return platform.scheduler.getInstance((await environment.getEnvInfo()).instanceId);
    });
  } catch (error) {
    await environment.release();
    if (signal.aborted) throw stoppedBefore(ref);
    throw error;
  }
}

/** Resolves on Ctrl-C or at the end of stdin. */
async function untilStopped(stop: AbortSignal): Promise<void> {
  await Promise.race([stop.aborted ? undefined : once(stop, "abort"), endOfInput()]);
  process.stdin.destroy();
}

function endOfInput(): Promise<unknown> {
  const ended = Promise.race(["end", "close", "error"].map((event) => once(process.stdin, event).catch(() => {})));
  process.stdin.resume();
  return ended;
}
