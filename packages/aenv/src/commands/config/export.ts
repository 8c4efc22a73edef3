import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isObject } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { isSecret, readSettings, type Settings, settingsPath, withDefaults, writeSettings } from "../../platform/settings.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options {
  readonly output: string;
  readonly reveal?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("write the settings to a file")
    .description("Writes the settings to a file that `aenv config load` reads. Secrets are left out.")
    .option("--output <file>", "the file to write", "cli_config_export.json")
    .option("--reveal", "also write the secrets")
    .option("--force", "overwrite an existing file")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config export", "aenv config export --output team.json"))
    .action((options: Options) => {
      const output = resolve(terminal.cwd, options.output);
      if (existsSync(output) && !options.force) throw new Failure(`${output} already exists`, { hint: "Overwrite it with --force." });
      const all = withDefaults(readSettings(settingsPath(terminal).path));
      writeSettings(output, (options.reveal ? all : withoutSecrets(all)) as Settings);
      const printer = createPrinter(terminal, options.json === true);
      printer.json({ output, secrets: options.reveal === true });
      printer.print(`Wrote ${output}${options.reveal ? "" : " without the secrets"}`);
    });
}

function withoutSecrets(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (isSecret(key) && !isObject(each) ? [] : [[key, withoutSecrets(each)]])),
  );
}
