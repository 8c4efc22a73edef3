import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { ownPackage } from "../project/own-package.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Prints the versions of this package and of Node, and the platform.")
    .option("-s, --short", "print only the version number")
    .option("-j, --json", "print JSON")
    .addHelpText("after", examples("aenv version", "aenv version --short", "aenv version --json"))
    .action((options: { short?: boolean; json?: boolean }) => {
      const printer = createPrinter(terminal, options.json === true);
      const facts = { version: ownPackage().version, node: process.versions.node, platform: `${process.platform}-${process.arch}` };
      if (printer.isJson) printer.json(facts);
      else if (options.short) printer.print(facts.version);
      else printer.print(`aenvironment ${facts.version}\nNode         ${facts.node}\nPlatform     ${facts.platform}`);
    });
}
