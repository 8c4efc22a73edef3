import { parseBoundedJson } from "@aenv/contract";
import { STATE_ANNOTATION } from "./names.ts";
import type { Pod } from "./types.ts";

/** What a later server needs to know about a pod, in one of its annotations. It contains no secret. */
export interface PodState {
  readonly format: 1;
  /** The port on which the program listens; null if it does not listen. */
  readonly port: number | null;
  /** Process 1 is our init. Without it, the image's own program. */
  readonly hasInit: boolean;
  /** Where the server adds folders; set if there is an init. */
  readonly bundles?: string;
  /** Where a volume of the template keeps folders for other pods. */
  readonly cache?: string;
  /** The init starts the program by itself, as soon as the container runs. */
  readonly startsEarly?: boolean;
  readonly memoryMb: number | null;
  /** The name of the container beside the main one that has an init too. */
  readonly second?: string;
  /** Chosen for each attempt, so that a server recognizes the pod that it has created. */
  readonly attempt: string;
  /** If it is not ready then, its server has died, and others remove it. Milliseconds. */
  readonly startsUntil: number;
}

/** Null for a pod that the platform has not made, or a newer one has. */
export function stateOf(pod: Pod): PodState | null {
  try {
    const state = parseBoundedJson(pod.metadata.annotations?.[STATE_ANNOTATION] ?? "null") as PodState | null;
    return state?.format === 1 ? state : null;
  } catch {
    return null;
  }
}
