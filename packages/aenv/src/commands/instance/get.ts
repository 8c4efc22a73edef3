import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { instanceFacts } from "../../platform/instance-view.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .alias("info")
    .summary("show one instance")
    .description("Shows one instance: its status, its addresses, and when it expires.")
    .argument("<id>", "the instance");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv instance get my-env-abc234", "aenv instance get my-env-abc234 --json"))
    .action((id: string, options: Options) => get(id, options, terminal));
}

async function get(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { scheduler } = openPlatform(options, terminal);
  const record = await callServer(terminal, `Looking for ${id}`, () => scheduler.getInstance(id));
  printer.json(record);
  if (!printer.isJson) printer.print(instanceFacts(record, printer.output));
}
