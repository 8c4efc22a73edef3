import type { CommandDefaults } from "../engine.ts";
import { READY_ANNOTATION } from "./pod/names.ts";
import type { Pod } from "./pod/types.ts";

/** Whether the program of the pod has answered: from then on, other servers adopt it. */
export function isReady(pod: Pod | null): boolean {
  return pod?.metadata.annotations?.[READY_ANNOTATION] !== undefined;
}

export function readyAnnotation(defaults: CommandDefaults): Readonly<Record<string, string>> {
  return { [READY_ANNOTATION]: JSON.stringify(defaults) };
}

export function readReadyDefaults(pod: Pod): CommandDefaults {
  try {
    return JSON.parse(pod.metadata.annotations?.[READY_ANNOTATION] ?? "") as CommandDefaults;
  } catch {
    return { cwd: "/", env: {} };
  }
}
