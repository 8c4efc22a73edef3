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
    .summary("print the output of an instance")
    .description(
      "Prints the last lines of the output of an instance's process. With --follow also new lines, until Ctrl-C or the end of the instance.",
    )
    .argument("<id>", "the instance")
    .option("-n, --tail <number>", "the number of last lines", integer(0, 10_000), 100)
    .option("-f, --follow", "also print new lines")
    .option("--json", "print one line of JSON per line");
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
    // Ctrl-C is the normal end of --follow.
    if (!signal?.aborted) throw withServerHint(error);
  }
}
