import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { exactRefArgument } from "../../options/ref.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly version?: string;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("release a version, so that it is not deleted")
    .description("Releases a version: from then on only an administrator can delete it.")
    .argument("<environment>", "name@version")
    .option("-v, --version <version>", "the version, instead of name@version")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv env release my-env@1.0.0"))
    .action((name: string, options: Options) => release(name, options, terminal));
}

async function release(name: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const ref = exactRefArgument(name, options.version);
  const { hub } = openPlatform(options, terminal);
  await callServer(terminal, `Releasing ${ref}`, () => hub.release(ref));
  printer.json({ environment: ref, status: "Released" });
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(ref)} is released`);
}
