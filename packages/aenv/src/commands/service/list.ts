import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { serviceTable } from "../../platform/service-view.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly name?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list services")
    .description("Lists your services and how many of their replicas run.")
    .option("-n, --name <name>", "only of this environment; name or name@version");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv service list", "aenv service list --name my-env --json"))
    .action((options: Options) => list(options, terminal));
}

async function list({ name, ...options }: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { services, url } = openPlatform(options, terminal);
  const found = await callServer(terminal, `Asking ${url}`, () => services.list(name === undefined ? {} : { ref: name }));
  printer.json(found);
  if (printer.isJson) return;
  if (found.length > 0) printer.print(serviceTable(found, printer.output));
  else printer.print(`No services${name === undefined ? "" : ` of ${name}`}. Start one with: aenv service create ${name ?? "NAME"}`);
}
