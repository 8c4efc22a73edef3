import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { maskSecrets, readSettings, settingsPath, withDefaults } from "../../platform/settings.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { parseKey, valueAt } from "./key.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("print one setting")
    .description("Prints one setting; fails if it does not exist. Secrets are masked.")
    .argument("<key>", "a path with dots, e.g. hub_config.timeout")
    .option("--reveal", "print a secret unmasked")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config get hub_config.hub_backend", "aenv config get hub_config.api_key --reveal"))
    .action((text: string, options: { reveal?: boolean; json?: boolean }) => {
      const own = readSettings(settingsPath(terminal).path);
      const key = parseKey(text, own);
      const found = valueAt(withDefaults(own), key);
      if (found === undefined) throw new Failure(`there is no setting '${text}'`, { hint: "List them with: aenv config show" });
      const value = options.reveal ? found : maskSecrets(found, text);
      const printer = createPrinter(terminal, options.json === true);
      if (printer.isJson) printer.json(value);
      else printer.print(typeof value === "string" ? value : JSON.stringify(value, null, 2));
    });
}
