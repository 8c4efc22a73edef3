import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { confirm } from "../../terminal/confirm.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly yes?: boolean;
  readonly deleteStorage?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("delete a service")
    .description("Deletes a service and its replicas. Its storage is kept unless --delete-storage is given.")
    .argument("<id>", "the service")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--delete-storage", "also delete its storage and the data in it")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv service delete tools", "aenv service delete tools --yes --delete-storage"))
    .action((id: string, options: Options) => remove(id, options, terminal));
}

async function remove(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { services } = openPlatform(options, terminal);
  const deleteStorage = options.deleteStorage === true;
  const question = deleteStorage ? `Delete ${id} and the data in its storage?` : `Delete ${id}?`;
  if (!options.yes && !(await confirm(question, terminal, "--yes"))) {
    printer.json({ deleted: [] });
    printer.print("Nothing was deleted.");
    return;
  }
  // Read first: deleting an unknown name is no error for a server.
  await callServer(terminal, `Deleting ${id}`, async () => {
    await services.get(id);
    await services.delete(id, { deleteStorage });
  });
  printer.json({ deleted: [id] });
  printer.print(`${printer.output.colors.green("✔")} ${id} is deleted`);
}
