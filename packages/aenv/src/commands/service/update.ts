import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../../options/format.ts";
import { collectPair } from "../../options/pairs.ts";
import { integer } from "../../options/values.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { serviceFacts } from "../../platform/service-view.ts";
import { Failure } from "../../terminal/failure.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly replicas?: number;
  readonly image?: string;
  readonly env?: Record<string, string>;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("change a service")
    .description("Changes the number of replicas of a service, or its variables. New variables replace the replicas one by one.")
    .argument("<id>", "the service")
    .option("-r, --replicas <number>", "the number of replicas; 0 stops them all", integer(0, 1_000))
    .option("--image <image>", "another image, for servers that run containers")
    .option("-e, --env <KEY=VALUE>", "a variable to add or change; may be repeated", collectPair);
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv service update tools --replicas 4", "aenv service update tools --env DEBUG=1"))
    .action((id: string, options: Options) => update(id, options, terminal));
}

async function update(id: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { replicas, image, env } = options;
  if (replicas === undefined && image === undefined && env === undefined) {
    throw new Failure("nothing to change was given", { exit: "usage", hint: "Give --replicas, --env or --image." });
  }
  const { services } = openPlatform(options, terminal);
  const change = {
    ...(replicas !== undefined && { replicas }),
    ...(image !== undefined && { image }),
    ...(env !== undefined && { environment_variables: env }),
  };
  const record = await callServer(terminal, `Changing ${id}`, () => services.update(id, change));
  printer.json(record);
  if (!printer.isJson) printer.print(serviceFacts(record, printer.output));
}
