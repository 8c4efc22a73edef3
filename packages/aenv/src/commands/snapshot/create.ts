import { type ForkFidelity, forkFidelities } from "@aenv/contract";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, nextCommand, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { snapshotTable } from "../../platform/snapshot-view.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly name?: string;
  readonly fidelity: ForkFidelity;
  readonly includeSecrets?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("store a snapshot of an instance")
    .description("Stores a snapshot of a running instance, which goes on. Others start from it until it is deleted.")
    .argument("<instance>", "the instance")
    .option("--name <name>", "its name; its id if not given")
    .addOption(
      new Option("--fidelity <what>", "what is stored: the state, also the files of the sandbox, or the sandbox with its memory")
        .choices(forkFidelities)
        .default("state"),
    )
    .option("--include-secrets", "store files or memory although the instance got secrets, which may be in there");
  addPlatformOptions(addOutputOption(command))
    .addHelpText(
      "after",
      examples(
        "aenv snapshot create my-env-abc234 --name prepared",
        "aenv snapshot create my-env-abc234 --name prepared --fidelity files --json",
      ),
    )
    .action((instance: string, options: Options) => create(instance, options, terminal));
}

async function create(instance: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { scheduler } = openPlatform(options, terminal);
  const { name, fidelity, includeSecrets } = options;
  const stored = await callServer(terminal, `Storing ${instance}`, () =>
    scheduler.storeSnapshot(instance, {
      fidelity,
      ...(name !== undefined && { name }),
      ...(includeSecrets === true && { include_secrets: true }),
    }),
  );
  printer.json(stored);
  if (printer.isJson) return;
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(instance)} is stored as ${colors.bold(stored.name)}`);
  printer.print(snapshotTable([stored], printer.output));
  for (const address of stored.cut ?? []) printer.print(colors.dim(`  Instances from it do not have the open connection to ${address}.`));
  const [environment] = stored.environment.split("@");
  printer.print(
    `  ${colors.dim("Start from it with:")} ${nextCommand(`aenv instance create ${environment} --snapshot ${stored.name}`, options, colors)}`,
  );
}
