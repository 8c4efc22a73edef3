/** More are of little use: the work of a call is done in its sandbox, which needs a core too. */
const MAX = 16;
const CORES_PER_WORKER = 4;

/**
 * How many processes serve the data port if the configuration does not say. A call costs its sandbox more than the gateway, so most cores
 * are left to sandboxes; one process, which is the simplest, is enough for a small machine.
 */
export function workersFor(cores: number): number {
  return Math.min(MAX, Math.max(1, Math.floor(cores / CORES_PER_WORKER)));
}
