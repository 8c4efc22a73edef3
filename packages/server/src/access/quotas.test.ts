import { describe, expect, it, vi } from "vitest";
import { Quotas } from "./quotas.ts";

const limits = { instances: 10, createsPerSecond: 2, blobBytes: 100, snapshots: 5, snapshotBytes: 100 };

describe("quotas", () => {
  it("admit a burst of one second, then the rate, and say when to retry", () => {
    let now = 0;
    const quotas = new Quotas(limits, {}, () => now);
    quotas.admitCreate("ada");
    quotas.admitCreate("ada");
    expect(() => quotas.admitCreate("ada")).toThrow(/2 creations a second for 'ada'; try again in 1 s/);
    quotas.admitCreate("bob");
    now = 500;
    quotas.admitCreate("ada");
    expect(() => quotas.admitCreate("ada")).toThrow();
  });

  it("admit creations after the system clock was changed", () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2030-01-01") });
    try {
      const quotas = new Quotas({ ...limits, createsPerSecond: 1_000_000 });
      quotas.admitCreate("ada", 1_000_000);
      vi.setSystemTime(new Date("2020-01-01"));
      const over = performance.now() + 5;
      while (performance.now() < over);
      quotas.admitCreate("ada");
    } finally {
      vi.useRealTimers();
    }
  });

  it("use an owner's own limits if set, also for owners with unusual names", () => {
    const quotas = new Quotas(limits, { ada: { instances: 99 } });
    expect(quotas.instanceLimit("ada")).toBe(99);
    expect(quotas.blobLimit("ada")).toBe(100);
    expect(quotas.instanceLimit("constructor")).toBe(10);
  });
});
