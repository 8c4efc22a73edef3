import { countText } from "../terminal/table.ts";
import type { Manifest } from "./bundle.ts";

const SHOWN = 6;

/** What a bundle offers, or, if its environment is a command, how many files it has. */
export function contentText({ main, files, tools, functions, rewards }: Manifest): string {
  if (main === undefined) return countText(files.length, "file");
  return [countText(tools.length, "tool"), countText(functions.length, "function"), countText(rewards.length, "reward")].join(", ");
}

export function leftOutText(leftOut: readonly string[]): string {
  const rest = leftOut.length - SHOWN;
  return `left out: ${leftOut.slice(0, SHOWN).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
