import { describe, expect, it } from "vitest";
import type { Pod } from "../pod/types.ts";
import type { Quota } from "../quota.ts";
import { QuotaBudget } from "./budget.ts";

const podOf = (cpu: string): Pod => ({
  metadata: { name: "pool-1" },
  spec: { containers: [{ name: "main", resources: { limits: { cpu: "2" }, requests: { cpu } } }] },
});

function budget(hard: Quota["hard"], used: Quota["used"] = {}, seen: readonly Pod[] = [], sandboxes: readonly Pod[] = []): QuotaBudget {
  return new QuotaBudget({ quotas: [{ name: "q", hard, used }], pods: seen }, sandboxes);
}

/** How many of the wanted pods there is room for. */
function taken(from: QuotaBudget, pod: Pod, wanted: number): number {
  let count = 0;
  while (count < wanted && from.take(pod)) count++;
  return count;
}

describe("the room for waiting pods", () => {
  const one = podOf("1");

  it("is half of what a quota leaves beside sandboxes and pods of others, so that sandboxes of other kinds find room", () => {
    expect(taken(budget({ pods: "10", services: "0" }, { pods: "4" }), one, 8)).toBe(3);
    // Two of the four waited or were sandboxes, and there are three sandboxes now.
    expect(taken(budget({ pods: "10" }, { pods: "4" }, [one, one], [one, one, one]), one, 8)).toBe(2);
    expect(taken(budget({ pods: "1" }), one, 1)).toBe(0);
    // The cluster counts later than the pods are known.
    expect(taken(budget({ pods: "10" }, { pods: "1" }, [one, one], [one, one]), one, 8)).toBe(4);
  });

  it("is shared by the kinds, by what each of their pods needs", () => {
    const some = budget({ "requests.cpu": "4", pods: "100" });
    expect([taken(some, podOf("500m"), 3), taken(some, podOf("250m"), 8), taken(some, podOf("10m"), 1)]).toEqual([3, 2, 0]);
  });

  it("holds amounts that do not add up exactly", () => {
    expect(taken(budget({ "requests.cpu": "4" }), podOf("100m"), 30)).toBe(20);
  });

  it("is not limited without a quota, and is none if one is exceeded", () => {
    expect(taken(new QuotaBudget({ quotas: [], pods: [] }, [one]), one, 8)).toBe(8);
    expect(taken(budget({ cpu: "1" }, { cpu: "3" }), one, 8)).toBe(0);
  });
});
