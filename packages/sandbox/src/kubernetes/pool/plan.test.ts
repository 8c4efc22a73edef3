import { describe, expect, it } from "vitest";
import { Demand } from "../../pool/demand.ts";
import { share } from "../../pool/share.ts";
import type { Pod } from "../pod/types.ts";
import { choose, stepsOf, surplusOf, usabilityOf } from "./plan.ts";

const limits = { min: 1, max: 8, total: 10, idleMs: 60_000 };

function pod(name: string, status: Pod["status"] = {}, more: Partial<Pod["metadata"]> = {}): Pod {
  return { metadata: { name, uid: name, ...more }, spec: { containers: [{ name: "main" }] }, status };
}

const running: Pod["status"] = { phase: "Running", podIP: "10.0.0.1", containerStatuses: [{ name: "main", state: { running: {} } }] };
const failed: Pod["status"] = { phase: "Failed" };

describe("the number of waiting pods", () => {
  /** Kinds that are used so often, and when each was used last. */
  const targets = (...uses: readonly (readonly [perSecond: number, usedAt: number])[]) => {
    let left = limits.total;
    const kinds = uses.map(([perSecond, usedAt], at) => {
      const demand = new Demand(usedAt, 20_000);
      demand.perSecond = () => perSecond;
      return { name: String(at), demand };
    });
    const given = share(stepsOf(kinds, limits, 100_000), () => left-- > 0);
    return kinds.map(({ name }) => given.get(name) ?? 0);
  };

  it("grows with how often they are needed, between the least and the most, and is none for a kind that nobody uses", () => {
    expect(targets([0, 99_000], [0.1, 99_000], [1, 99_000], [100, 99_000], [0, 40_000])).toEqual([0, 0, 2, 8, 0]);
    expect(targets([0, 99_000], [0.1, 99_000], [1, 99_000])).toEqual([1, 1, 5]);
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
