import type { Terminal } from "./terminal.ts";

/** Something that the user should know, though the command goes on. On stderr, so that stdout stays what programs read. */
export function warn({ stderr }: Terminal, text: string): void {
  stderr.write(`${stderr.colors.yellow("!")} ${text}\n`);
}
