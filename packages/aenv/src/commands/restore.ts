import { resolve } from "node:path";
import { restore as restoreBackup } from "@aenv/server";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../options/format.ts";
import { addStoreOptions, contentsText, readStoreConfig, type StoreOptions } from "../server/store-options.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { facts, timeText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { tildePath } from "../terminal/tilde-path.ts";

interface Options extends StoreOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .argument("<backup>", "the file or folder that aenv backup has written")
    .description(
      "Restores a backup into an empty home, on the machine of the server that will use it. Everything is verified before anything gets its place: a damaged backup restores nothing. Stop the server that was backed up first, because both would play the open rollouts and start the services.",
    );
  addStoreOptions(command);
  addOutputOption(command)
    .addHelpText("after", examples("aenv restore aenv.tar --home /srv/aenv", "aenv restore /backups/monday --home ./restored --json"))
    .action((source: string, options: Options) => restore(source, options, terminal));
}

async function restore(source: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const config = await readStoreConfig(options, terminal);
  const restored = await withSpinner(terminal, "Restoring", () => restoreBackup({ config, source: resolve(terminal.cwd, source) }));
  const { createdAt, contents, notIncluded, damaged } = restored;
  printer.json({ home: config.home, createdAt, contents, notIncluded, damaged });
  if (printer.isJson) return;
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} Restored the backup of ${timeText(createdAt)} into ${colors.bold(tildePath(config.home))}`);
  printer.print(
    facts(
      [
        ["Contains", contentsText(contents)],
        ...[...notIncluded, ...damaged].map((one, index): [string, string] => [index === 0 ? "Not in it" : "", one]),
      ],
      printer.output,
    ),
  );
  printer.print(`  ${colors.dim("Start the server with:")} aenv server --home ${tildePath(config.home)}`);
}
