import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { ownPackage } from "../project/own-package.ts";
import { type Terminal, voiceOf } from "../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Says which version this is, and what runs it.")
    .option("-s, --short", "the number only")
    .option("-j, --json", "as JSON")
    .addHelpText("after", examples("aenv version", "aenv version --short", "aenv version --json"))
    .action((options: { short?: boolean; json?: boolean }) => {
      const voice = voiceOf(terminal, options.json === true);
      const facts = { version: ownPackage().version, node: process.versions.node, platform: `${process.platform}-${process.arch}` };
      if (voice.isJson) voice.data(facts);
      else if (options.short) voice.say(facts.version);
      else voice.say(`aenvironment ${facts.version}\nNode         ${facts.node}\nPlatform     ${facts.platform}`);
    });
}
