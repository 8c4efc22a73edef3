import type { Problem } from "./failure.ts";
import { placeText } from "./failure-text.ts";
import type { Terminal } from "./terminal.ts";

/** Something that the user should know, though the command goes on. On stderr, so that stdout stays what programs read. */
export function warn({ stderr }: Terminal, text: string): void {
  stderr.write(`${stderr.colors.yellow("!")} ${text}\n`);
}

/** The same for what is wrong at a place in a file. */
export function warnProblems(terminal: Terminal, problems: readonly Problem[]): void {
  const { colors } = terminal.stderr;
  for (const { message, place } of problems)
    warn(terminal, place === undefined ? message : `${colors.cyan(placeText(place, terminal.cwd))} ${message}`);
}
