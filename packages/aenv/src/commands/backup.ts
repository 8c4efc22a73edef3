import { resolve } from "node:path";
import { backUp } from "@aenv/server";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../options/format.ts";
import { ownPackage } from "../project/own-package.ts";
import { addStoreOptions, contentsText, readStoreConfig, type StoreOptions } from "../server/store-options.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { bytesText, facts } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { tildePath } from "../terminal/tilde-path.ts";

interface Options extends StoreOptions, FormatOptions {}

export function define(command: Command, terminal: Terminal): void {
  command
    .argument("<target>", "a new file whose name ends in .tar, or else a new folder")
    .description(
      "Writes the published environments, snapshots, services, tokens and rollouts of a server into a file or folder that only you can read. The server may run: run this on its machine, as its user. Instances are not in a backup. It is for servers with the SQLite store; a Redis has backups of its own.",
    );
  addStoreOptions(command);
  addOutputOption(command)
    .addHelpText(
      "after",
      examples("aenv backup aenv.tar", "aenv backup /backups/monday --home /srv/aenv", "aenv backup aenv.tar --config server.json --json"),
    )
    .action((target: string, options: Options) => backup(target, options, terminal));
}

async function backup(target: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const config = await readStoreConfig(options, terminal);
  const path = resolve(terminal.cwd, target);
  const made = await withSpinner(terminal, "Writing the backup", () => backUp({ config, target: path, version: ownPackage().version }));
  const { contents, notIncluded, damaged, files, createdAt } = made;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  printer.json({ target: path, createdAt, files: files.length, bytes, contents, notIncluded, damaged });
  if (printer.isJson) return;
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} Backed up ${tildePath(config.home)} to ${colors.bold(target)}`);
  printer.print(
    facts(
      [
        ["Contains", contentsText(contents)],
        ["Size", bytesText(bytes)],
        ...notIncluded.map((one, index): [string, string] => [index === 0 ? "Not in it" : "", one]),
      ],
      printer.output,
    ),
  );
  for (const one of damaged)
    printer.print(colors.yellow(`  Damaged in this home, so not in the backup: ${one}. Push the version again, or delete it`));
  printer.print(colors.dim("  It contains secrets, such as the variables of services: keep it as safe as the home of the server."));
  printer.print(`  ${colors.dim("Restore it with:")} aenv restore ${target} --home NEW-FOLDER`);
}
