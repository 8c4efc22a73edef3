import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as stats from "./stats.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Shows how hard the tasks of an environment are for an agent.")
    .addHelpText("after", examples("aenv tasks stats NAME"));
  addSubcommands(command, terminal, { stats });
}
