import { InvalidArgumentError } from "commander";

/** Gathers `KEY=VALUE` of an option that may come several times. */
export function pair(text: string, known: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  const key = text.slice(0, Math.max(0, at)).trim();
  if (key === "") throw new InvalidArgumentError("Write it as KEY=VALUE.");
  return { ...known, [key]: text.slice(at + 1).trim() };
}

/** Gathers the values of an option that may come several times. */
export function several(text: string, known: readonly string[] = []): string[] {
  return [...known, text];
}
