import { describe, expect, it } from "vitest";
import type { ObjectMeta } from "../api/client.ts";
import { endOf, hasTerminated, progressOf } from "./progress.ts";
import type { ContainerStatus, Pod, PodStatus } from "./types.ts";

/** Without the message of the node, which may quote what an internal server answered. */
const notPulled = "its registry does not have it, wants other credentials, or did not answer; the events of the pod have the details";
const NOW = Date.parse("2026-11-17T06:00:00Z");

function pod(status: PodStatus, metadata: Partial<ObjectMeta> = {}): Pod {
  const containers = [{ name: "main", image: "shop:1" }, { name: "second" }];
  return { metadata: { name: "p", ...metadata }, spec: { containers, initContainers: [{ name: "aenv-init", image: "base:1" }] }, status };
}

function waiting(reason: string, message?: string): PodStatus {
  return {
    phase: "Pending",
    containerStatuses: [{ name: "main", state: { waiting: { reason, ...(message !== undefined && { message }) } } }],
  };
}

function terminated(state: NonNullable<ContainerStatus["state"]>["terminated"]): PodStatus {
  return { phase: "Running", containerStatuses: [{ name: "main", state: state === undefined ? {} : { terminated: state } }] };
}

describe("the progress of a pod", () => {
  it("is to wait for a node and for its container, and then to run at an address", () => {
    expect(progressOf(pod({ phase: "Pending" }), NOW, 0)).toEqual({ kind: "waiting", detail: "no node yet" });
    expect(progressOf(pod(waiting("ContainerCreating")), NOW, 0)).toEqual({ kind: "waiting", detail: "ContainerCreating" });
    const running = { phase: "Running", containerStatuses: [{ name: "main", state: { running: {} } }] } as const;
    expect(progressOf(pod(running), NOW, 0)).toMatchObject({ kind: "waiting" });
    expect(progressOf(pod({ ...running, podIP: "10.0.0.7" }), NOW, 0)).toEqual({ kind: "running", ip: "10.0.0.7" });
  });

  it.each([
    ["ErrImagePull", "dial tcp 10.0.0.1:80: connection refused", `the image 'shop:1' cannot be pulled (ErrImagePull): ${notPulled}`],
    ["ImagePullBackOff", undefined, `the image 'shop:1' cannot be pulled (ImagePullBackOff): ${notPulled}`],
    ["ErrImageNeverPull", undefined, "the image 'shop:1' is not on the node, and the pull policy is Never (ErrImageNeverPull)"],
    ["InvalidImageName", undefined, "the image 'shop:1' has no valid name (InvalidImageName)"],
    ["CreateContainerConfigError", "no secret", "the node cannot create the container 'main' (CreateContainerConfigError): no secret"],
  ])("is stuck with %s, in words", (reason, message, words) => {
    expect(progressOf(pod(waiting(reason, message)), NOW, 0)).toEqual({ kind: "stuck", reason: words, isCapacity: false });
  });

  it("is stuck if an init container's image cannot be pulled", () => {
    const initContainerStatuses = [{ name: "aenv-init", state: { waiting: { reason: "ErrImagePull" } } }];
    expect(progressOf(pod({ phase: "Pending", initContainerStatuses }), NOW, 0)).toMatchObject({
      reason: expect.stringContaining("base:1"),
    });
  });

  it("without a node is stuck only after the time that a new node may take", () => {
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes: Insufficient cpu" };
    const since = { ...condition, lastTransitionTime: "2026-11-17T05:59:50Z" };
    const unscheduled = pod({ phase: "Pending", conditions: [since] });
    expect(progressOf(unscheduled, NOW, 30_000)).toMatchObject({ kind: "waiting", detail: expect.stringContaining("Insufficient cpu") });
    expect(progressOf(unscheduled, NOW, 10_000)).toEqual({
      kind: "stuck",
      reason: "no node of the cluster has room for it: 0/3 nodes: Insufficient cpu",
      isCapacity: true,
    });
  });
});

describe("the end of a pod", () => {
  it("is none while it starts or runs, or only another container has ended", () => {
    expect(endOf(pod({ phase: "Running" }))).toBeNull();
    expect(endOf(pod({ phase: "Running", containerStatuses: [{ name: "second", state: { terminated: { exitCode: 1 } } }] }))).toBeNull();
  });

  it("is that of its main container", () => {
    expect([pod(terminated({ exitCode: 7 })), pod({ phase: "Failed" }), pod({ phase: "Running" })].map(hasTerminated)).toEqual([
      true,
      true,
      false,
    ]);
    expect(endOf(pod(terminated({ exitCode: 7, reason: "Error" })))).toEqual({ kind: "exit", code: 7 });
    expect(endOf(pod(terminated({ exitCode: 137, reason: "OOMKilled" })))).toEqual({ kind: "out-of-memory" });
    expect(endOf(pod(terminated({ exitCode: 128, reason: "StartError", message: "no such file" })))).toEqual({
      kind: "cluster",
      reason: "the container could not be started: no such file",
    });
  });

  it.each([
    [{ phase: "Failed", reason: "Evicted", message: "low on memory" }, {}, "the node evicted the pod: low on memory"],
    [{ phase: "Running" }, { deletionTimestamp: "2026-11-17T05:59:50Z" }, "the pod was deleted by another client of the cluster"],
    [
      {
        phase: "Running",
        conditions: [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler", message: "preempted" }],
      },
      { deletionTimestamp: "2026-11-17T05:59:50Z" },
      "the cluster ended the pod (PreemptionByScheduler): preempted",
    ],
    [
      { phase: "Failed", initContainerStatuses: [{ name: "aenv-init", state: { terminated: { exitCode: 1, message: "disk full" } } }] },
      {},
      "its init container 'aenv-init' failed with exit code 1: disk full",
    ],
    [{ phase: "Failed", reason: "NodeLost", message: "no heartbeat" }, {}, "the pod ended (NodeLost): no heartbeat"],
  ] satisfies [PodStatus, Partial<ObjectMeta>, string][])("by the cluster has the cluster's reason: %o", (status, metadata, reason) => {
    expect(endOf(pod(status, metadata))).toEqual({ kind: "cluster", reason });
  });
});
