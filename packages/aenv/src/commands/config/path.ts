import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { settingsPath } from "../../platform/settings.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("print the path of the settings file")
    .description("Prints the path of the settings file in use.")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config path", "aenv config path --json"))
    .action((options: { json?: boolean }) => {
      const found = settingsPath(terminal);
      const printer = createPrinter(terminal, options.json === true);
      if (printer.isJson) printer.json(found);
      else printer.print(found.exists ? found.path : `${found.path} (does not exist yet)`);
    });
}
