import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as create from "./create.ts";
import * as deleteCommand from "./delete.ts";
import * as events from "./events.ts";
import * as fork from "./fork.ts";
import * as get from "./get.ts";
import * as list from "./list.ts";
import * as logs from "./logs.ts";
import * as presign from "./presign.ts";
import * as renew from "./renew.ts";
import * as reset from "./reset.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Starts, lists, resets, forks and deletes instances of published environments.")
    .addHelpText("after", examples("aenv instance create my-env", "aenv instance list", "aenv instance logs ID --follow"));
  addSubcommands(command, terminal, { create, list, get, logs, events, reset, fork, renew, presign, delete: deleteCommand });
}
