import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { timeText } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly ttl: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("extend the lifetime of an instance")
    .description("Sets the remaining lifetime of an instance.")
    .argument("<id>", "the instance")
    .requiredOption("-t, --ttl <duration>", "the lifetime from now on, e.g. 1h");
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv instance renew my-env-abc234 --ttl 2h"))
    .action((id: string, options: Options) => renew(id, options, terminal));
}

async function renew(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { scheduler } = openPlatform(options, terminal);
  const record = await callServer(terminal, `Renewing ${id}`, () => scheduler.renewInstance(id, options.ttl));
  printer.json(record);
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(id)} expires at ${timeText(String(record.expires_at ?? ""))}`);
}
