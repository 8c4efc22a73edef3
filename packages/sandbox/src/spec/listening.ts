import { OWN_CONNECTIONS_VARIABLE } from "@aenv/contract";
import type { Listening, SandboxSpec } from "../engine/engine.ts";

/** The default: the engine appends the address to the command. */
export const APPENDED = { kind: "appended" } as const satisfies Listening;

/** Where a program must listen. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The command and the variables of a program that listens on a port. That of an image is not changed: it has its own settings. */
export function tellAddress(
  { command, variables }: Pick<SandboxSpec, "command" | "variables">,
  { host, port }: ListenAddress,
): Pick<SandboxSpec, "command" | "variables"> {
  if (command.length === 0) return { command, variables };
  return {
    command: command.map((part) => part.replaceAll("{port}", String(port)).replaceAll("{host}", host)),
    // An environment may use HOST for something else.
    variables: { HOST: host, ...variables, PORT: String(port) },
  };
}

/** Variables of programs that the platform reaches from outside of their sandbox: environments of the kit then refuse connections from inside. */
export const outsideOnly: Readonly<Record<string, string>> = { [OWN_CONNECTIONS_VARIABLE]: "refuse" };

/** The path that says whether a program is ready. */
export function healthPathOf(listening: Listening): string {
  return (listening.kind === "port" ? listening.healthPath : null) ?? "/health";
}

/**
 * Whether an answer to the health path means that a program is ready. A path that the environment names must succeed; without one, also a
 * server without that path is ready, which answers 404.
 */
export function isReadyStatus(healthPath: string | null, status: number): boolean {
  return status < (healthPath === null ? 500 : 400);
}
