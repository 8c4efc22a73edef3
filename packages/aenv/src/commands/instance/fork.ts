import { type ForkFidelity, forkFidelities } from "@aenv/contract";
import { type Command, Option } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { integer } from "../../options/values.ts";
import { instanceTable } from "../../platform/instance-view.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { countText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly count: number;
  readonly fidelity?: ForkFidelity;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("copy an instance with its state")
    .description("Creates independent copies of an instance with its current state. They run until they are deleted or expire.")
    .argument("<id>", "the instance")
    .option("-c, --count <number>", "the number of copies", integer(1, 1_000), 1)
    .addOption(
      new Option(
        "--fidelity <what>",
        "what the copies have: the state, also the files of the sandbox, or the sandbox with its memory; if not given, the state, and of a program its memory or else its files",
      ).choices(forkFidelities),
    );
  addPlatformOptions(addOutputOption(command))
    .addHelpText(
      "after",
      examples("aenv instance fork my-env-abc234", "aenv instance fork my-env-abc234 --count 8 --fidelity memory --json"),
    )
    .action((id: string, options: Options) => fork(id, options, terminal));
}

async function fork(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { scheduler } = openPlatform(options, terminal, { timeoutMs: 120_000 });
  const copies = await callServer(terminal, `Forking ${id}`, () =>
    scheduler.forkInstance(id, options.count, options.fidelity === undefined ? {} : { fidelity: options.fidelity }),
  );
  printer.json(copies);
  if (printer.isJson) return;
  const { colors } = printer.output;
  const { fork_fidelity: fidelity = "state" } = copies[0] ?? {};
  printer.print(`${colors.green("✔")} ${countText(copies.length, "fork")} of ${colors.bold(id)}, with its ${fidelity}`);
  printer.print(instanceTable(copies, printer.output));
}
