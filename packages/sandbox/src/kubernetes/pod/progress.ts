import { DAEMON_FAILURE } from "../../registry/failure.ts";
import { MAIN } from "./default-templates.ts";
import { stateOf } from "./state.ts";
import type { ContainerStatus, Pod, Terminated } from "./types.ts";

/** How far the start of a pod is. */
export type PodProgress =
  | { readonly kind: "waiting"; readonly detail: string }
  | { readonly kind: "running"; readonly ip: string }
  /** It will not start without a change. `isCapacity`: another pod's end may be enough. */
  | { readonly kind: "stuck"; readonly reason: string; readonly isCapacity: boolean }
  | { readonly kind: "ended"; readonly end: PodEnd };

/** Why a pod ended: its program, or the cluster. */
export type PodEnd =
  | { readonly kind: "out-of-memory" }
  | { readonly kind: "exit"; readonly code: number }
  | { readonly kind: "cluster"; readonly reason: string };

const NOT_PULLED = "cannot be pulled";
/** Reasons of waiting containers that waiting does not change, in words. */
const STUCK: Readonly<Record<string, string>> = {
  ErrImagePull: NOT_PULLED,
  ImagePullBackOff: NOT_PULLED,
  ErrImageNeverPull: "is not on the node, and the pull policy is Never",
  InvalidImageName: "has no valid name",
  ImageInspectError: "cannot be read",
  ErrImageInspect: "cannot be read",
  RegistryUnavailable: NOT_PULLED,
};
const NOT_CREATED = new Set(["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "StartError"]);

/** `unschedulableMs`: how long a pod may wait for a node, such as one that an autoscaler adds. */
export function progressOf(pod: Pod, now: number, unschedulableMs: number): PodProgress {
  const end = endOf(pod);
  if (end !== null) return { kind: "ended", end };
  const { podIP, conditions = [], containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const main = statusOf(pod);
  const second = secondStatusOf(pod);
  const isRunning = main?.state?.running !== undefined && (second === null || second?.state?.running !== undefined);
  if (isRunning && podIP !== undefined && podIP !== "") return { kind: "running", ip: podIP };
  const secondEnd = secondEndOf(pod);
  if (secondEnd !== null) return { kind: "stuck", reason: secondEnd, isCapacity: false };
  const all = [...initContainerStatuses, ...containerStatuses];
  for (const status of all) {
    const reason = stuckReason(pod, status);
    if (reason !== null) return { kind: "stuck", reason, isCapacity: false };
  }
  const scheduled = conditions.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False" && scheduled.reason === "Unschedulable") {
    const since = Date.parse(scheduled.lastTransitionTime ?? pod.metadata.creationTimestamp ?? "");
    const reason = `no node of the cluster has room for it: ${scheduled.message ?? "unschedulable"}`;
    if (!(now - since < unschedulableMs)) return { kind: "stuck", reason, isCapacity: true };
    return { kind: "waiting", detail: reason };
  }
  const waiting = all.find(({ state }) => state?.waiting !== undefined)?.state?.waiting;
  return { kind: "waiting", detail: waiting?.message ?? waiting?.reason ?? stepOf(pod, all.length > 0) };
}

function stepOf({ spec: { nodeName } }: Pod, isReported: boolean): string {
  if (nodeName === undefined) return "no node yet";
  return isReported ? "the node starts it" : `node ${nodeName} has reported nothing about it: check that its kubelet runs`;
}

/** Null while it starts or runs. */
export function endOf(pod: Pod): PodEnd | null {
  const { phase, reason, message, conditions = [], initContainerStatuses = [] } = pod.status ?? {};
  const disruption = conditions.find(({ type, status }) => type === "DisruptionTarget" && status === "True");
  const terminated = statusOf(pod)?.state?.terminated;
  const isOver = hasTerminated(pod);
  if (disruption !== undefined && (isOver || pod.metadata.deletionTimestamp !== undefined))
    return cluster(`the cluster ended the pod (${disruption.reason}): ${disruption.message ?? "no message"}`);
  if (reason === "Evicted") return cluster(`the node evicted the pod: ${message ?? "no message"}`);
  if (pod.metadata.deletionTimestamp !== undefined) return cluster("the pod was deleted by another client of the cluster");
  if (!isOver) return null;
  if (terminated !== undefined) return endOfContainer(terminated);
  const failed = initContainerStatuses.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0);
  if (failed !== undefined)
    return cluster(
      `its init container '${failed.name}' failed with exit code ${failed.state?.terminated?.exitCode}${tail(failed.state?.terminated?.message)}`,
    );
  return cluster(`the pod ended (${reason ?? phase})${tail(message)}`);
}

/** Why the second container has ended; null while it starts or runs, and for a pod without one. */
export function secondEndOf(pod: Pod): string | null {
  const { terminated } = secondStatusOf(pod)?.state ?? {};
  if (terminated === undefined) return null;
  return terminated.reason === "OOMKilled"
    ? "the second container ran out of memory"
    : `the second container ended with exit code ${terminated.exitCode}${tail(terminated.message)}`;
}

/** Whether the container that runs the program has ended, whoever ended it. */
export function hasTerminated(pod: Pod): boolean {
  const { phase } = pod.status ?? {};
  return phase === "Failed" || phase === "Succeeded" || statusOf(pod)?.state?.terminated !== undefined;
}

function endOfContainer({ exitCode, reason, message }: Terminated): PodEnd {
  if (reason === "OOMKilled") return { kind: "out-of-memory" };
  if (reason === "ContainerCannotRun" || reason === "StartError") return cluster(`the container could not be started${tail(message)}`);
  return { kind: "exit", code: exitCode };
}

function stuckReason(pod: Pod, { name, state }: ContainerStatus): string | null {
  const { reason, message } = state?.waiting ?? {};
  if (reason === undefined) return null;
  const words = STUCK[reason];
  if (words !== undefined) {
    const image = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((one) => one.name === name)?.image ?? "";
    return `the image '${image}' ${words} (${reason})${words === NOT_PULLED ? `: ${DAEMON_FAILURE}; the events of the pod have the details` : tail(message)}`;
  }
  return NOT_CREATED.has(reason) ? `the node cannot create the container '${name}' (${reason})${tail(message)}` : null;
}

/** Status of the container that runs the program. */
function statusOf(pod: Pod): ContainerStatus | undefined {
  const name = pod.spec.containers.some((one) => one.name === MAIN) ? MAIN : pod.spec.containers[0]?.name;
  return pod.status?.containerStatuses?.find((one) => one.name === name);
}

/** Null for a pod without a second container that has an init. */
function secondStatusOf(pod: Pod): ContainerStatus | null | undefined {
  const { second } = stateOf(pod) ?? {};
  return second === undefined ? null : pod.status?.containerStatuses?.find(({ name }) => name === second);
}

function cluster(reason: string): PodEnd {
  return { kind: "cluster", reason };
}

function tail(message: string | undefined): string {
  return message === undefined || message === "" ? "" : `: ${message}`;
}
