import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as load from "./load.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Manages the images of a server, on the server's machine.")
    .addHelpText("after", examples("aenv image load docker-daemon:my-env:1.0.0", "aenv image load my-env.tar --name my-env:1.0.0"));
  addSubcommands(command, terminal, { load });
}
