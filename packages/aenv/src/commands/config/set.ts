import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { checkSettings, maskSecrets, readSettings, settingsPath, writeSettings } from "../../platform/settings.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { parseKey, parseValue, withValue } from "./key.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("change one setting")
    .description("Changes one setting; everything else in the file stays. The file is created if there is none.")
    .argument("<key>", "a path with dots, e.g. hub_config.timeout")
    .argument("<value>", "a value that is not valid JSON is text")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv config set owner ada", "aenv config set hub_config.timeout 60", "aenv config set system_url null"))
    .action((text: string, word: string, options: { json?: boolean }) => {
      const { path } = settingsPath(terminal);
      const own = readSettings(path);
      const key = parseKey(text, own);
      const value = parseValue(word);
      writeSettings(path, checkSettings(withValue(own, key, value)));
      const printer = createPrinter(terminal, options.json === true);
      printer.json({ key: text, value: maskSecrets(value, text), path });
      printer.print(`${text} is now ${JSON.stringify(maskSecrets(value, text))} in ${path}`);
    });
}
