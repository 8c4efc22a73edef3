import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as create from "./create.ts";
import * as deleteCommand from "./delete.ts";
import * as get from "./get.ts";
import * as list from "./list.ts";
import * as update from "./update.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Manages services: replicas of a published environment that are kept alive, behind one address.")
    .addHelpText("after", examples("aenv service create my-env --replicas 2", "aenv service list", "aenv service update ID --replicas 4"));
  addSubcommands(command, terminal, { create, list, get, update, delete: deleteCommand });
}
