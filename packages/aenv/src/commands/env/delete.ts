import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { refArgument } from "../../options/ref.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { confirm } from "../../terminal/confirm.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly version?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("delete a version, or all versions of a name")
    .description(
      "Deletes a version, or all versions of a name. A version that is released or has instances is not deleted; then none is. The number of a deleted version cannot be used for different content.",
    )
    .argument("<environment>", "name@version, or a name for all of its versions")
    .option("-v, --version <version>", "the version, instead of name@version")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText("after", examples("aenv env delete my-env@1.0.0", "aenv env delete my-env --yes"))
    .action((name: string, options: Options) => remove(name, options, terminal));
}

async function remove(name: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const ref = refArgument(name, options.version);
  const what = ref.includes("@") ? ref : `every version of ${ref}`;
  const { hub, hubUrl } = openPlatform(options, terminal);
  if (!options.yes && !(await confirm(`Delete ${what} at ${hubUrl}?`, terminal, "--yes"))) {
    printer.json({ environment: ref, deleted: [] });
    printer.print("Nothing was deleted.");
    return;
  }
  const deleted = await callServer(terminal, `Deleting ${ref}`, () => hub.delete(ref));
  printer.json({ environment: ref, deleted });
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} deleted ${deleted.map((version) => colors.bold(`${ref.split("@")[0]}@${version}`)).join(", ")}`);
}
