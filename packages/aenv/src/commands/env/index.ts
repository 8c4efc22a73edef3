import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as deleteCommand from "./delete.ts";
import * as release from "./release.ts";
import * as versions from "./versions.ts";
import * as visibility from "./visibility.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Manages published environments: lists versions, releases them, changes who sees them, and deletes them.")
    .addHelpText("after", examples("aenv env versions my-env", "aenv env release my-env@1.0.0", "aenv env visibility my-env@1.0.0 public"));
  addSubcommands(command, terminal, { versions, release, visibility, delete: deleteCommand });
}
