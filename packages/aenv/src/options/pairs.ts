import { InvalidArgumentError } from "commander";

/** Collects `KEY=VALUE` of an option that may be repeated. */
export function collectPair(text: string, known: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  const key = text.slice(0, Math.max(0, at)).trim();
  if (key === "") throw new InvalidArgumentError("Write it as KEY=VALUE.");
  return { ...known, [key]: text.slice(at + 1).trim() };
}

/** Collects the values of an option that may be repeated. */
export function collect(text: string, known: readonly string[] = []): string[] {
  return [...known, text];
}

/** Collects mount points, each written as `KEY=VALUE,KEY=VALUE`. */
export function collectMount(text: string, known: readonly Record<string, string>[] = []): Record<string, string>[] {
  return [...known, text.split(",").reduce<Record<string, string>>((mount, one) => collectPair(one, mount), {})];
}
