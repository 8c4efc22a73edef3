import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { isObject } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { checkSettings, readSettings, settingsPath, writeSettings } from "../../platform/settings.ts";
import { parseJsonFile } from "../../project/json-file.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("load settings from a file")
    .description("Loads the settings of a JSON file: each of its top-level keys replaces the current one, the others stay.")
    .argument("<file>", "a file as `aenv config export` writes it")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config load team.json"))
    .action((file: string, options: { json?: boolean }) => {
      const from = resolve(terminal.cwd, file);
      if (!existsSync(from)) throw new Failure(`there is no file ${from}`, { exit: "usage" });
      const { value } = parseJsonFile(from, readFileSync(from, "utf8"));
      if (!isObject(value)) throw new Failure(`${from} must contain a JSON object`);
      const { path } = settingsPath(terminal);
      writeSettings(path, checkSettings({ ...readSettings(path), ...value }));
      const printer = createPrinter(terminal, options.json === true);
      printer.json({ path, loaded: Object.keys(value) });
      printer.print(`Loaded ${Object.keys(value).join(", ")} into ${path}`);
    });
}
