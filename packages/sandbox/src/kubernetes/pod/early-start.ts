import type { SandboxSpec } from "../../engine/engine.ts";
import { APPENDED } from "../../spec/listening.ts";

/** The variable with the address of the pod, which is known when its container starts. */
export const POD_IP = "AENV_POD_IP";

/**
 * Whether the init starts the program by itself: the program is then ready about when the cluster reports that the pod runs, and not some
 * hundred milliseconds later.
 */
export function startsEarly({ startsEarly = false, command, listening, folder, image }: SandboxSpec): boolean {
  return startsEarly && command.length > 0 && folder === undefined && image === undefined && (listening ?? APPENDED).kind === "appended";
}

/** A word of a command that the node does not take for a reference to a variable. */
export function literal(word: string): string {
  return word.replaceAll("$(", "$$$$(");
}

/** The program with where to listen. The node replaces references to variables. */
export function earlyCommand({ command }: SandboxSpec, port: number): string[] {
  return [...command.map(literal), "--host", `$(${POD_IP})`, "--port", String(port)];
}
