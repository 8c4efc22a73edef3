import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { confirm } from "../../terminal/confirm.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("delete stored snapshots")
    .description("Deletes stored snapshots. Instances that were started from them go on.")
    .argument("<names...>", "their names or ids")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv snapshot delete prepared", "aenv snapshot delete one two --yes"))
    .action((names: string[], options: Options) => remove(names, options, terminal));
}

async function remove(names: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { snapshots } = openPlatform(options, terminal);
  if (!options.yes && !(await confirm(`Delete ${names.join(", ")}?`, terminal, "--yes"))) {
    printer.json({ deleted: [] });
    printer.print("Nothing was deleted.");
    return;
  }
  await callServer(terminal, `Deleting ${names.join(", ")}`, async () => {
    // All are looked up first, so that a wrong name deletes nothing.
    for (const name of names) await snapshots.get(name);
    for (const name of names) await snapshots.delete(name);
  });
  printer.json({ deleted: names });
  for (const name of names) printer.print(`${printer.output.colors.green("✔")} ${name} is deleted`);
}
