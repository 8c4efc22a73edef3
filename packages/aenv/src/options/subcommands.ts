import type { Command } from "commander";
import type { Terminal } from "../terminal/terminal.ts";

/** A file that adds one subcommand to its group. */
export interface Subcommand {
  define(command: Command, terminal: Terminal): void;
}

/** The path is the command: `commands/instance/list.ts` is `instance list`. */
export function addSubcommands(group: Command, terminal: Terminal, subcommands: Readonly<Record<string, Subcommand>>): void {
  for (const [name, module] of Object.entries(subcommands)) {
    const command = group.command(name).helpOption("-h, --help", "print this help");
    module.define(command.option("--verbose", "print more, and the stack of an unexpected error"), terminal);
  }
}
