import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { defaultSettings, settingsPath, writeSettings } from "../../platform/settings.ts";
import { confirm } from "../../terminal/confirm.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("restore the defaults")
    .description("Restores the defaults, after a confirmation.")
    .option("--force", "do not ask for confirmation")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config reset", "aenv config reset --force"))
    .action(async (options: { force?: boolean; json?: boolean }) => {
      const { path, exists } = settingsPath(terminal);
      if (exists && !options.force && !(await confirm(`Replace everything in ${path} by the defaults?`, terminal, "--force"))) {
        throw new Failure("nothing was changed", { exit: "cancelled" });
      }
      writeSettings(path, defaultSettings);
      const printer = createPrinter(terminal, options.json === true);
      printer.json({ path });
      printer.print(`Restored the defaults in ${path}`);
    });
}
