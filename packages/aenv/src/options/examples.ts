/** The examples at the end of a help text. */
export function examples(...lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  $ ${line}`), ""].join("\n");
}
