import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as create from "./create.ts";
import * as deleteCommand from "./delete.ts";
import * as list from "./list.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Manages stored snapshots of instances, from which others start.")
    .addHelpText(
      "after",
      examples(
        "aenv snapshot create my-env-abc234 --name prepared",
        "aenv snapshot list",
        "aenv instance create my-env --snapshot prepared",
      ),
    );
  addSubcommands(command, terminal, { create, list, delete: deleteCommand });
}
