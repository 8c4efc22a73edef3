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
    .summary("end a service")
    .description("Ends a service and its replicas. Its storage stays unless you say otherwise.")
    .argument("<id>", "the service")
    .option("-y, --yes", "do not ask")
    .option("--delete-storage", "take its storage away too; what is in it is lost")
    .option("--json", "as JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv service delete tools", "aenv service delete tools --yes --delete-storage"))
    .action((id: string, options: Options) => remove(id, options, terminal));
}

async function remove(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { services } = openPlatform(options, terminal);
  const deleteStorage = options.deleteStorage === true;
  const question = deleteStorage ? `End ${id} and lose what is in its storage?` : `End ${id}?`;
  if (!options.yes && !(await confirm(question, terminal, "--yes"))) {
    printer.json({ deleted: [] });
    printer.print("Nothing was ended.");
    return;
  }
  // Looked for first: a server does not say of a name that it never knew it.
  await callServer(terminal, `Ending ${id}`, async () => {
    await services.get(id);
    await services.delete(id, { deleteStorage });
  });
  printer.json({ deleted: [id] });
  printer.print(`${printer.output.colors.green("✔")} ${id} has ended`);
}
