import { describe, expect, it } from "vitest";
import type { Pod } from "../pod/types.ts";
import { statusOf } from "./status.ts";
import type { Deployment } from "./types.ts";

function deployment(replicas: number, status: Deployment["status"] = {}): Deployment {
  return { metadata: { name: "counter", generation: 2 }, spec: { replicas }, status } as Deployment;
}

function pod(name: string, status: Pod["status"], more: Partial<Pod["metadata"]> = {}): Pod {
  return {
    metadata: { name, ...more },
    spec: { containers: [{ name: "main", image: "shop:1" }] },
    ...(status !== undefined && { status }),
  };
}

const ready = (ip: string): Pod["status"] => ({ phase: "Running", podIP: ip, conditions: [{ type: "Ready", status: "True" }] });
const read = (one: Deployment | null, pods: readonly Pod[] = []) => statusOf(one, pods, 9000, 0, 1_000);

describe("the status of a service", () => {
  it("counts available replicas, at most those that are wanted", () => {
    const done = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 3 };
    expect(read(deployment(2, done))).toEqual({ available: 2, isUpdating: false, replicas: [], reason: null });
    expect(read(null)).toMatchObject({ available: 0, isUpdating: true });
  });

  it("is updating until the cluster has seen the latest change and all replicas have it", () => {
    const done = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2 };
    for (const change of [{ observedGeneration: 1 }, { updatedReplicas: 1 }, { replicas: 3 }])
      expect(read(deployment(2, { ...done, ...change })).isUpdating, JSON.stringify(change)).toBe(true);
  });

  it("lists pods that are ready and stay, in a fixed order", () => {
    const pods = [
      pod("b", ready("10.0.0.2")),
      pod("a", ready("10.0.0.1")),
      pod("ends", ready("10.0.0.3"), { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      pod("starts", { phase: "Running", podIP: "10.0.0.4", conditions: [{ type: "Ready", status: "False" }] }),
      pod("waits", { phase: "Pending" }),
    ];
    expect(read(deployment(2), pods).replicas).toEqual([
      { id: "a", address: { kind: "tcp", host: "10.0.0.1", port: 9000 } },
      { id: "b", address: { kind: "tcp", host: "10.0.0.2", port: 9000 } },
    ]);
  });

  it("says why replicas do not run: refused by the cluster, without an image, or with a program that ends", () => {
    const conditions = [{ type: "ReplicaFailure", status: "True", message: "exceeded quota" }];
    expect(read(deployment(1, { conditions })).reason).toContain("exceeded quota");
    const waiting = { waiting: { reason: "ImagePullBackOff", message: "not found" } };
    const noImage = pod("a", { phase: "Pending", containerStatuses: [{ name: "main", state: waiting }] });
    expect(read(deployment(1), [noImage]).reason).toContain("the image 'shop:1' cannot be pulled");
    const ended = {
      name: "main",
      restartCount: 3,
      state: { waiting: { reason: "CrashLoopBackOff" } },
      lastState: { terminated: { exitCode: 7 } },
    };
    expect(read(deployment(1), [pod("a", { phase: "Running", containerStatuses: [ended] })]).reason).toBe(
      "its program (container 'main') ended with exit code 7 and was started again 3 times",
    );
    expect(read(deployment(1), [pod("a", { phase: "Pending" })]).reason).toBeNull();
  });
});
