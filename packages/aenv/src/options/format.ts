import { type Command, Option } from "commander";
import { createPrinter, type Printer } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

type Format = "table" | "json";

export interface FormatOptions {
  readonly output?: Format;
  readonly format?: Format;
  readonly json?: boolean;
}

/** `-o, --output table|json`, and the short form `--json`. */
export function addOutputOption(command: Command): Command {
  return addOption(command, "-o, --output <format>");
}

/** The same as `-f, --format`, the name it has in `list` and `get`. */
export function addFormatOption(command: Command): Command {
  return addOption(command, "-f, --format <format>");
}

export function printerFor(terminal: Terminal, { output, format, json }: FormatOptions): Printer {
  return createPrinter(terminal, json === true || (output ?? format) === "json");
}

function addOption(command: Command, flags: string): Command {
  return command
    .addOption(new Option(flags, "the format of the output").choices(["table", "json"]).default("table"))
    .option("--json", "print JSON");
}
