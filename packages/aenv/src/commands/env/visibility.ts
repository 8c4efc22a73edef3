import { type Visibility, visibilities } from "@aenv/contract";
import { Argument, type Command } from "commander";
import { examples } from "../../options/examples.ts";
import { collect } from "../../options/pairs.ts";
import { exactRefArgument } from "../../options/ref.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../../platform/platform.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends PlatformOptions {
  readonly shareWith?: string[];
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("set who sees a version")
    .description("Sets who sees a version besides its owner: nobody, everybody, or the given owners.")
    .argument("<environment>", "name@version")
    .addArgument(new Argument("<who>", "who sees it").choices(visibilities))
    .option("--share-with <owner>", "with shared: an owner who sees it; may be repeated; replaces the previous ones", collect)
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples("aenv env visibility my-env@1.0.0 public", "aenv env visibility my-env@1.0.0 shared --share-with ada --share-with bob"),
    )
    .action((name: string, who: Visibility, options: Options) => setVisibility(name, who, options, terminal));
}

async function setVisibility(name: string, visibility: Visibility, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const ref = exactRefArgument(name);
  const { shareWith: sharedWith } = options;
  if (sharedWith !== undefined && visibility !== "shared")
    throw new Failure(`--share-with needs the visibility shared, not ${visibility}`, { exit: "usage" });
  const { hub } = openPlatform(options, terminal);
  await callServer(terminal, `Changing ${ref}`, () => hub.setVisibility(ref, { visibility, ...(sharedWith && { sharedWith }) }));
  printer.json({ environment: ref, visibility, ...(sharedWith && { sharedWith }) });
  const { colors } = printer.output;
  const whom = sharedWith === undefined ? "" : ` with ${sharedWith.join(", ")}`;
  printer.print(`${colors.green("✔")} ${colors.bold(ref)} is ${visibility}${whom}`);
}
