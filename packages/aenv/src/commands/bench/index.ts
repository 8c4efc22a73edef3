import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as data from "./data.ts";
import * as grade from "./grade.ts";
import * as images from "./images.ts";
import * as list from "./list.ts";
import * as run from "./run.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Benchmarks that are part of this package as environments. Their data is not, and is prepared from a copy of the benchmark.",
    )
    .addHelpText("after", examples("aenv bench list", "aenv bench data tau2 --from ./tau2-bench", "aenv bench run tau2 --agent oracle"));
  addSubcommands(command, terminal, { list, data, images, run, grade });
}
