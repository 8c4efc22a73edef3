import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as exportCommand from "./export.ts";
import * as get from "./get.ts";
import * as init from "./init.ts";
import * as load from "./load.ts";
import * as path from "./path.ts";
import * as reset from "./reset.ts";
import * as set from "./set.ts";
import * as show from "./show.ts";

const subcommands = { show, get, set, init, load, export: exportCommand, reset, path };

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "The settings of this command, in the first of ~/.aenv/cli_config.json, ./.aenv/cli_config.json and /etc/aenv/cli_config.json that exists. Only `init`, `set`, `load` and `reset` write the file.",
    )
    .addHelpText(
      "after",
      examples("aenv config show", "aenv config set hub_config.hub_backend http://hub.example:8080", "aenv config get owner --json"),
    );
  for (const [name, module] of Object.entries(subcommands)) {
    module.define(command.command(name).helpOption("-h, --help", "print this help").option("--verbose", "print more"), terminal);
  }
}
