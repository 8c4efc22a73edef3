import type { ServiceReplica, ServiceStatus } from "../../engine/service.ts";
import { progressOf } from "../pod/progress.ts";
import type { Pod } from "../pod/types.ts";
import type { Deployment } from "./types.ts";

/** What a deployment and its pods say about a service. */
export function statusOf(
  deployment: Deployment | null,
  pods: readonly Pod[],
  port: number,
  now: number,
  unschedulableMs: number,
): ServiceStatus {
  const { replicas: wanted = 1 } = deployment?.spec ?? {};
  const { generation = 0 } = deployment?.metadata ?? {};
  const { availableReplicas = 0, updatedReplicas = 0, replicas: existing = 0, observedGeneration = 0 } = deployment?.status ?? {};
  const available = Math.min(wanted, availableReplicas);
  const isUpdating = observedGeneration < generation || updatedReplicas < wanted || existing > updatedReplicas;
  return {
    available,
    isUpdating,
    replicas: pods.flatMap((pod) => replicaOf(pod, port)).sort((one, other) => (one.id < other.id ? -1 : 1)),
    // Old replicas may be available while new ones do not start.
    reason: available < wanted || isUpdating ? reasonOf(deployment, pods, now, unschedulableMs) : null,
  };
}

/** Only pods that are ready, and are not about to end. */
function replicaOf(pod: Pod, port: number): ServiceReplica[] {
  const { metadata, status = {} } = pod;
  if (!isReady(pod) || metadata.deletionTimestamp !== undefined || !status.podIP) return [];
  return [{ id: metadata.name, address: { kind: "tcp", host: status.podIP, port } }];
}

export function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;
}

function reasonOf(deployment: Deployment | null, pods: readonly Pod[], now: number, unschedulableMs: number): string | null {
  const refused = deployment?.status?.conditions?.find(({ type, status }) => type === "ReplicaFailure" && status === "True");
  if (refused !== undefined) return `the cluster refuses its pods: ${refused.message ?? refused.reason ?? "no message"}`;
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp !== undefined) continue;
    const crash = crashOf(pod);
    if (crash !== null) return crash;
    const progress = progressOf(pod, now, unschedulableMs);
    if (progress.kind === "stuck") return progress.reason;
  }
  return null;
}

/** A program that ends is started again by the cluster, with growing pauses. */
function crashOf({ status }: Pod): string | null {
  for (const { name, lastState, restartCount = 0, state } of status?.containerStatuses ?? []) {
    const ended = state?.terminated ?? lastState?.terminated;
    if (ended === undefined || (restartCount === 0 && state?.terminated === undefined)) continue;
    const how = ended.reason === "OOMKilled" ? "ran out of memory" : `ended with exit code ${ended.exitCode}`;
    return `its program (container '${name}') ${how}${restartCount > 0 ? ` and was started again ${restartCount} times` : ""}`;
  }
  return null;
}
