import type { CommandDefaults, SandboxProgram, SandboxSpec } from "../engine/engine.ts";
import type { ImageConfig } from "../images/layout.ts";

/** What the init is asked to start in a sandbox. */
export interface MainProgram {
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  /** `user`, `uid`, `user:group` or `uid:gid`, which the init looks up in the image; empty for root. */
  readonly user: string;
}

/** The program of a sandbox: its own command or else that of the image; null if neither has one. Its own variables win. */
export function mainProgram(spec: Pick<SandboxSpec, "command" | "variables">, image: ImageConfig | null): MainProgram | null {
  const command = spec.command.length > 0 ? spec.command : (image?.command ?? []);
  if (command.length === 0) return null;
  return {
    command,
    variables: { ...variablesOf(image?.variables ?? []), ...spec.variables },
    workingDirectory: image?.workingDirectory ?? "/",
    user: image?.user ?? "",
  };
}

/** What commands in a sandbox with the image have unless they say otherwise. */
export function imageDefaults(image: ImageConfig | null): CommandDefaults {
  const { workingDirectory: cwd = "/", variables = [], user = "" } = image ?? {};
  return { cwd, env: variablesOf(variables), ...(user !== "" && { user }) };
}

/** Reads a list of `NAME=value`. */
export function variablesOf(list: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(list.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
}

/** What a container of the image would run with these changes: another entry point replaces the command too. Null if there is nothing to run. */
export function containerProgram(
  { entrypoint, command, cwd, user }: SandboxProgram,
  variables: Readonly<Record<string, string>>,
  image: ImageConfig,
): MainProgram | null {
  const given = command ?? (entrypoint === undefined ? image.command.slice(image.entrypoint.length) : []);
  const program = [...(entrypoint ?? image.entrypoint), ...given];
  const found = program.length === 0 ? null : mainProgram({ command: program, variables }, image);
  return found && { ...found, ...(cwd !== undefined && { workingDirectory: cwd }), ...(user !== undefined && { user }) };
}
