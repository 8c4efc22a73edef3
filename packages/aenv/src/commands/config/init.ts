import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { defaultSettings, writeSettings } from "../../platform/settings.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("write a settings file")
    .description("Writes a settings file with the defaults, which only you can read. An existing file is not changed.")
    .option("--path <file>", "the file; ~/.aenv/cli_config.json if not given")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config init", "aenv config init --path .aenv/cli_config.json"))
    .action((options: { path?: string; json?: boolean }) => {
      const home = join(terminal.env.HOME ?? homedir(), ".aenv/cli_config.json");
      const path = options.path === undefined ? home : resolve(terminal.cwd, options.path);
      if (existsSync(path)) throw new Failure(`${path} already exists`, { hint: "Restore the defaults with: aenv config reset" });
      writeSettings(path, defaultSettings);
      const printer = createPrinter(terminal, options.json === true);
      printer.json({ path });
      printer.print(`Wrote ${path}`);
    });
}
