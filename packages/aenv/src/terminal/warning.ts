import type { Problem } from "./failure.ts";
import { placeText } from "./failure-text.ts";
import type { Terminal } from "./terminal.ts";

/** Prints a warning to stderr; stdout is for the answer. */
export function warn({ stderr }: Terminal, text: string): void {
  stderr.write(`${stderr.colors.yellow("!")} ${text}\n`);
}

/** Prints each problem as a warning, with its location in the file. */
export function warnProblems(terminal: Terminal, problems: readonly Problem[]): void {
  const { colors } = terminal.stderr;
  for (const { message, place } of problems)
    warn(terminal, place === undefined ? message : `${colors.cyan(placeText(place, terminal.cwd))} ${message}`);
}
