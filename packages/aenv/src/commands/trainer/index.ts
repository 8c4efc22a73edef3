import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as agentLightning from "./agent-lightning.ts";
import * as atropos from "./atropos.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Plays episodes for the server of a trainer, and reports their rewards. Unscored episodes never count as a reward.")
    .addHelpText(
      "after",
      examples(
        "aenv trainer agent-lightning shop@1.0.0 --url http://127.0.0.1:8080",
        "aenv trainer atropos shop@1.0.0 --url http://127.0.0.1:8000 --model M --base-url http://127.0.0.1:9001/v1",
      ),
    );
  addSubcommands(command, terminal, { "agent-lightning": agentLightning, atropos });
}
