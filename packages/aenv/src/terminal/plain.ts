import { stripVTControlCharacters } from "node:util";

/** Text of somebody else for a terminal: without colours, and without the control characters that move the cursor or rename windows. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]/gu, "\u{fffd}");
}
