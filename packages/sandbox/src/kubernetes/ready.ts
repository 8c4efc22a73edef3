import { parseBoundedJson } from "@aenv/contract";
import type { CommandDefaults } from "../engine/engine.ts";
import { READY_ANNOTATION } from "./pod/names.ts";
import type { Pod } from "./pod/types.ts";

/** Whether other servers may adopt the pod: its init answers, and its program has been given to it. */
export function isReady(pod: Pod | null): boolean {
  return pod?.metadata.annotations?.[READY_ANNOTATION] !== undefined;
}

/** What commands have by default, also in the second container. */
export interface ReadyDefaults extends CommandDefaults {
  readonly second?: CommandDefaults;
}

export function readyAnnotation(defaults: ReadyDefaults): Readonly<Record<string, string>> {
  return { [READY_ANNOTATION]: JSON.stringify(defaults) };
}

export function readReadyDefaults(pod: Pod): ReadyDefaults {
  try {
    return parseBoundedJson(pod.metadata.annotations?.[READY_ANNOTATION] ?? "") as ReadyDefaults;
  } catch {
    return { cwd: "/", env: {} };
  }
}
