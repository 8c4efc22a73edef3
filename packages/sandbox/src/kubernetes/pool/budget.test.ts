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

describe("the room for waiting pods", () => {
  const one = podOf("1");

  it("is half of what a quota leaves beside sandboxes and pods of others, so that sandboxes of other kinds find room", () => {
    expect(budget({ pods: "10", services: "0" }, { pods: "4" }).take(one, 8)).toBe(3);
    // Two of the four waited or were sandboxes, and there are three sandboxes now.
    expect(budget({ pods: "10" }, { pods: "4" }, [one, one], [one, one, one]).take(one, 8)).toBe(2);
    expect(budget({ pods: "1" }).take(one, 1)).toBe(0);
    // The cluster counts later than the pods are known.
    expect(budget({ pods: "10" }, { pods: "1" }, [one, one], [one, one]).take(one, 8)).toBe(4);
  });

  it("is shared by the kinds, by what each of their pods needs", () => {
    const some = budget({ "requests.cpu": "4", pods: "100" });
    expect([some.take(podOf("500m"), 3), some.take(podOf("250m"), 8), some.take(podOf("10m"), 1)]).toEqual([3, 2, 0]);
  });

  it("is not limited without a quota, and is none if one is exceeded", () => {
    expect(new QuotaBudget({ quotas: [], pods: [] }, [one]).take(one, 8)).toBe(8);
    expect(budget({ cpu: "1" }, { cpu: "3" }).take(one, 8)).toBe(0);
  });
});
