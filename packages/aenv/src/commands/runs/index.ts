import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as compare from "./compare.ts";
import * as list from "./list.ts";
import * as show from "./show.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Lists the runs that aenv rollout has kept, shows their numbers, and compares two of them.")
    .addHelpText("after", examples("aenv runs list", "aenv runs show NAME", "aenv runs compare NAME OTHER"));
  addSubcommands(command, terminal, { list, show, compare });
}
