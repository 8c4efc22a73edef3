import { type EnvironmentRecord, environmentStatuses, formatRef, isObject } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addFormatOption, type FormatOptions, printerFor } from "../options/format.ts";
import { refArgument } from "../options/ref.ts";
import { addPlatformOptions, callServer, openPlatform, type PlatformOptions } from "../platform/platform.ts";
import { type Catalogue, catalogueTable } from "../project/catalogue.ts";
import { facts, statusText, timeText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly version?: string;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Shows one published environment: its tools, functions and rewards, its publisher and its digest.")
    .argument("<name>", "name or name@version; the newest version if none is given")
    .option("-v, --version <version>", "the version, instead of name@version");
  addPlatformOptions(addFormatOption(command))
    .addHelpText("after", examples("aenv get my-env", "aenv get my-env@1.0.0 --json"))
    .action((name: string, options: Options) => get(name, options, terminal));
}

async function get(name: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { hub } = openPlatform(options, terminal);
  const ref = refArgument(name, options.version);
  const found = await callServer(terminal, `Looking for ${ref}`, () => hub.get(ref));
  printer.json(found);
  if (printer.isJson) return;
  const { colors } = printer.output;
  const status = environmentStatuses[found.status] ?? String(found.status);
  const lines = facts(
    [
      ["Environment", colors.bold(formatRef(found))],
      ["Description", found.description],
      ["Status", statusText(status, colors)],
      ["Seen by", textOf(found.visibility)],
      ["Publisher", textOf(found.publisher)],
      ["Tags", found.tags?.join(", ")],
      ["Depends on", Array.isArray(found.dependencies) ? found.dependencies.join(", ") : ""],
      ["Digest", textOf(found.bundle_digest)],
      ["Created", timeText(found.created_at)],
    ],
    printer.output,
  );
  printer.print(lines);
  const catalogue = catalogueOf(found);
  if (catalogue !== null) printer.print(`\n${catalogueTable(catalogue, printer.output)}`);
}

/** The catalogue, which the hub got by starting the environment; null if it did not start it. */
function catalogueOf({ metadata }: EnvironmentRecord): Catalogue | null {
  if (!isObject(metadata) || !isObject(metadata.catalogue)) return null;
  const { tools, catalogue } = metadata as {
    tools: Catalogue["tools"];
    catalogue: { functions: Catalogue["functions"]; reward: Catalogue["rewards"] };
  };
  return { tools, functions: catalogue.functions, rewards: catalogue.reward };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
