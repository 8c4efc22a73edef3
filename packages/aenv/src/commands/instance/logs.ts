import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { integer } from "../../options/values.ts";
import { addPlatformOptions, openPlatform, type PlatformOptions, withServerHint } from "../../platform/platform.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly tail: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("print what an instance printed")
    .description(
      "Prints the last lines that an instance's process has printed, and with --follow those that come, until Ctrl-C or its end.",
    )
    .argument("<id>", "the instance")
    .option("-n, --tail <number>", "how many of the last lines", integer(0, 10_000), 100)
    .option("-f, --follow", "go on with what comes")
    .option("--json", "one JSON line a line");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv instance logs my-env-abc234", "aenv instance logs my-env-abc234 --tail 0 --follow"))
    .action((id: string, options: Options) => logs(id, options, terminal));
}

async function logs(id: string, { tail, follow = false, ...options }: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { scheduler } = openPlatform(options, terminal);
  const signal = follow ? terminal.stopSignal() : undefined;
  try {
    for await (const line of scheduler.logs(id, { tail, follow, signal })) {
      if (printer.isJson) printer.jsonLine({ line });
      else printer.print(line);
    }
  } catch (error) {
    // Ctrl-C is how one stops to follow.
    if (!signal?.aborted) throw withServerHint(error);
  }
}
