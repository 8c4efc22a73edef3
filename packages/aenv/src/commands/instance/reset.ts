import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { integer } from "../../options/values.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly task?: string;
  readonly seed?: number;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("start a new episode")
    .description("Starts a new episode in an instance. Task and seed are those of the previous episode unless they are given.")
    .argument("<id>", "the instance")
    .option("--task <id>", "the task of the episode")
    .option("--seed <number>", "the seed of the episode", integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER))
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv instance reset my-env-abc234", "aenv instance reset my-env-abc234 --task t2 --seed 7"))
    .action((id: string, options: Options) => reset(id, options, terminal));
}

async function reset(id: string, { task, seed, ...options }: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { scheduler } = openPlatform(options, terminal);
  const episode = { ...(task !== undefined && { task }), ...(seed !== undefined && { seed }) };
  await callServer(terminal, `Resetting ${id}`, () => scheduler.resetInstance(id, episode));
  printer.json({ id, ...episode });
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(id)} started a new episode${task === undefined ? "" : ` of task ${task}`}`);
}
