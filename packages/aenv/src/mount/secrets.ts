import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** The values that are used while a server is mounted. The project has only the names. */
export function readSecrets(names: readonly string[], terminal: Terminal): Record<string, string> {
  const missing = names.find((name) => terminal.env[name] === undefined);
  if (missing !== undefined)
    throw new Failure(`the variable ${missing} is not set`, {
      exit: "usage",
      hint: `Set it for this command: ${missing}=... aenv mount ...`,
    });
  return Object.fromEntries(names.map((name) => [name, terminal.env[name] as string]));
}

/** How the kit refers to a variable of the instance. */
export function reference(name: string): string {
  return `\${${name}}`;
}

/** What to do about an address that was refused. */
export function refusalHint({ message }: Error): string | undefined {
  return /which is refused/.test(message) ? "Allow it with --allow-private, if it is meant." : undefined;
}
