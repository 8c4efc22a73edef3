import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as create from "./create.ts";
import * as list from "./list.ts";
import * as resetAdmin from "./reset-admin.ts";
import * as revoke from "./revoke.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Creates and revokes the tokens of a server; for administrators.")
    .addHelpText(
      "after",
      examples(
        "aenv token create --owner ada --role trainer",
        "aenv token list",
        "aenv token revoke 0123456789ab",
        "aenv token reset-admin",
      ),
    );
  addSubcommands(command, terminal, { create, list, revoke, "reset-admin": resetAdmin });
}
