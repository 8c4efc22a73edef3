import { type Command, Option } from "commander";
import { createPrinter, type Printer } from "../terminal/printer.ts";
import type { Terminal } from "../terminal/terminal.ts";

type Format = "table" | "json";

export interface FormatOptions {
  readonly output?: Format;
  readonly format?: Format;
  readonly json?: boolean;
}

/** `-o, --output table|json`, and `--json` for the same in a word. */
export function addOutputOption(command: Command): Command {
  return withFormatOption(command, "-o, --output <format>");
}

/** The same by the name that `list` and `get` have for it. */
export function addFormatOption(command: Command): Command {
  return withFormatOption(command, "-f, --format <format>");
}

export function printerFor(terminal: Terminal, { output, format, json }: FormatOptions): Printer {
  return createPrinter(terminal, json === true || (output ?? format) === "json");
}

function withFormatOption(command: Command, flags: string): Command {
  return command.addOption(new Option(flags, "how to print it").choices(["table", "json"]).default("table")).option("--json", "as JSON");
}
