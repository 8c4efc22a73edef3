import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { timeText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("show the events of an instance")
    .description("Shows the events of an instance and why it failed or ended, until ten minutes after its end.")
    .argument("<id>", "the instance");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv instance events my-env-abc234"))
    .action((id: string, options: Options) => events(id, options, terminal));
}

async function events(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { scheduler } = openPlatform(options, terminal);
  const found = await callServer(terminal, `Looking for ${id}`, () => scheduler.listEvents(id));
  printer.json(found);
  if (printer.isJson) return;
  for (const { at, what } of found) printer.print(`${printer.output.colors.dim(timeText(at))}  ${what}`);
}
