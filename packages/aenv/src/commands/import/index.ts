import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as harbor from "./harbor.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Makes an environment project of tasks in another format.")
    .addHelpText("after", examples("aenv import harbor ./my-tasks", "aenv import harbor ./my-tasks --name my-tasks --push"));
  addSubcommands(command, terminal, { harbor });
}
