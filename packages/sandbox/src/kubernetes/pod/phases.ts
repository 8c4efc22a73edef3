import type { Pod } from "./types.ts";

export type PodPhase = NonNullable<NonNullable<Pod["status"]>["phase"]> | "Terminating";

/** How many pods are in each phase. A pod that is being deleted counts as `Terminating`, as kubectl shows it. */
export function countPhases(pods: readonly Pod[]): Record<PodPhase, number> {
  const counts: Record<PodPhase, number> = { Pending: 0, Running: 0, Succeeded: 0, Failed: 0, Unknown: 0, Terminating: 0 };
  for (const { metadata, status } of pods)
    counts[metadata.deletionTimestamp === undefined ? (status?.phase ?? "Pending") : "Terminating"]++;
  return counts;
}
