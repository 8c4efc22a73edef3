import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { defaultSettings, settingsPath, writeSettings } from "../../platform/settings.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("put the defaults back")
    .description("Puts the defaults back; asks first.")
    .option("--force", "do not ask")
    .option("--json", "as JSON")
    .addHelpText("after", examples("aenv config reset", "aenv config reset --force"))
    .action(async (options: { force?: boolean; json?: boolean }) => {
      const { path, exists } = settingsPath(terminal);
      if (exists && !options.force) await confirm(`Replace everything in ${path} by the defaults?`, terminal);
      writeSettings(path, defaultSettings);
      const printer = createPrinter(terminal, options.json === true);
      printer.json({ path });
      printer.print(`${path} holds the defaults again`);
    });
}

async function confirm(question: string, terminal: Terminal): Promise<void> {
  if (!terminal.isInteractive) {
    throw new Failure("nobody is here to be asked", { exit: "usage", hint: "Say that you mean it with --force." });
  }
  const prompts = await import("@clack/prompts");
  const answer = await prompts.confirm({ message: question, initialValue: false, output: process.stderr });
  if (prompts.isCancel(answer) || !answer) throw new Failure("nothing was changed", { exit: "cancelled" });
}
