import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { statusText, table, timeText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list the versions of a name")
    .description("Lists the versions of a name, newest first, each with its history.")
    .argument("<name>", "the environment");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv env versions my-env", "aenv env versions my-env --json"))
    .action((name: string, options: Options) => versions(name, options, terminal));
}

async function versions(name: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { hub } = openPlatform(options, terminal);
  const found = await callServer(terminal, `Looking for ${name}`, () => hub.versions(name));
  printer.json(found);
  if (printer.isJson) return;
  const { colors } = printer.output;
  const rows = found.map((one) => {
    const seen = one.sharedWith.length === 0 ? one.visibility : `${one.visibility} (${one.sharedWith.join(", ")})`;
    const history = one.history.map(({ what, by }) => `${what} by ${by}`).join("\n");
    return [colors.bold(one.version), statusText(one.status, colors), seen, one.publisher, timeText(one.createdAt), history];
  });
  printer.print(table(["version", "status", "seen by", "publisher", "created", "history"], rows, printer.output));
}
