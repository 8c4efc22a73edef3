/** The part of a help text that most people read. */
export function examples(...lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  $ ${line}`), ""].join("\n");
}
