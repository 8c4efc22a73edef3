import { describe, expect, it } from "vitest";
import type { Pod } from "../pod/types.ts";
import { PodDemand } from "./demand.ts";
import { choose, surplusOf, targetsOf, usabilityOf } from "./plan.ts";

const limits = { min: 1, max: 8, total: 10, idleMs: 60_000 };

function pod(name: string, status: Pod["status"] = {}, more: Partial<Pod["metadata"]> = {}): Pod {
  return { metadata: { name, uid: name, ...more }, spec: { containers: [{ name: "main" }] }, status };
}

const running: Pod["status"] = { phase: "Running", podIP: "10.0.0.1", containerStatuses: [{ name: "main", state: { running: {} } }] };
const failed: Pod["status"] = { phase: "Failed" };

describe("the number of waiting pods", () => {
  const targets = (...uses: readonly (readonly [perSecond: number, usedAt: number])[]) => [
    ...targetsOf(
      uses.map(([perSecond, usedAt], at) => ({ digest: String(at), perSecond, usedAt })),
      limits,
      100_000,
      (_, wanted) => wanted,
    ),
  ];

  it("grows with how often they are needed, between the least and the most, and is none for a kind that nobody uses", () => {
    expect(targets([0, 99_000], [0.1, 99_000], [1, 99_000], [100, 99_000], [0, 40_000])).toEqual([
      ["3", 8],
      ["2", 2],
      ["1", 0],
      ["0", 0],
      ["4", 0],
    ]);
    expect(targets([0, 99_000], [0.1, 99_000], [1, 99_000])).toEqual([
      ["2", 5],
      ["1", 1],
      ["0", 1],
    ]);
  });

  it("follows a demand that halves every twenty seconds", () => {
    const demand = new PodDemand(0);
    for (let at = 0; at < 60_000; at += 500) demand.note(at);
    expect(demand.perSecond(60_000)).toBeCloseTo(1.76, 1);
    expect(demand.perSecond(80_000)).toBeCloseTo(0.88, 1);
    expect(demand.usedAt).toBe(59_500);
  });
});

describe("a waiting pod", () => {
  it("that runs is taken before one that starts, and one that has failed or is stuck is not taken", () => {
    const stuck: Pod["status"] = { containerStatuses: [{ name: "main", state: { waiting: { reason: "ImagePullBackOff" } } }] };
    const pods = [pod("failed", failed), pod("starts"), pod("runs", running), pod("stuck", stuck)];
    expect(pods.map((one) => usabilityOf(one, 0, 1_000))).toEqual(["useless", "starting", "running", "useless"]);
    for (const random of [0, 0.5, 0.99]) expect(choose(pods, 0, 1_000, random)?.metadata.name).toBe("runs");
    expect(choose(pods.slice(0, 2), 0, 1_000, 0.5)?.metadata.name).toBe("starts");
    expect(choose(pods.slice(0, 1), 0, 1_000, 0.5)).toBeNull();
  });

  it("beyond the target is the newest, for every server the same", () => {
    const pods = ["c", "a", "b"].map((name, at) => pod(name, running, { creationTimestamp: at === 0 ? "2026-01-02" : "2026-01-01" }));
    expect(surplusOf(pods, 1).map(({ metadata }) => metadata.name)).toEqual(["b", "c"]);
    expect(surplusOf(pods.toReversed(), 1).map(({ metadata }) => metadata.name)).toEqual(["b", "c"]);
  });
});
