import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { serviceFacts } from "../../platform/service-view.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command.summary("show one service").description("Shows one service: its status and its address.").argument("<id>", "the service");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv service get tools", "aenv service get tools --json"))
    .action((id: string, options: Options) => get(id, options, terminal));
}

async function get(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { services } = openPlatform(options, terminal);
  const record = await callServer(terminal, `Looking for ${id}`, () => services.get(id));
  printer.json(record);
  if (!printer.isJson) printer.print(serviceFacts(record, printer.output));
}
