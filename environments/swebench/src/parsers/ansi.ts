// biome-ignore lint/suspicious/noControlCharactersInRegex: the sequences start with one
const ESCAPES = /\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g;

/** Removes the escape sequences of terminals. */
export function withoutAnsi(text: string): string {
  return text.includes("\x1b") ? text.replace(ESCAPES, "") : text;
}
