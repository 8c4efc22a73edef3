import { describe, expect, it, vi } from "vitest";
import { Alarms } from "./alarms.ts";
import { dueNow, dueOf } from "./expiry.ts";
import type { InstanceRow } from "./row.ts";

const at = (seconds: number) => new Date(seconds * 1_000);
const row = {
  status: "Running",
  updatedAt: at(0).toISOString(),
  expiresAt: at(60).toISOString(),
  lastUsedAt: at(10).toISOString(),
  idleSeconds: null,
} as InstanceRow;

describe("expiry", () => {
  it("comes at the end of the time to live, and not a second earlier", () => {
    expect(dueNow(row, at(59))).toBeNull();
    expect(dueNow(row, at(60))).toBe("expire");
  });

  it("comes earlier for an idle instance, and never later than the time to live", () => {
    const idle = { ...row, idleSeconds: 20 };
    expect(dueNow(idle, at(29))).toBeNull();
    expect(dueNow(idle, at(30))).toBe("idle");
    expect(dueOf({ ...row, idleSeconds: 1_000 })).toEqual({ at: 60_000, what: "expire" });
  });

  it("does not count a slow start as idle time", () => {
    expect(dueNow({ ...row, status: "Creating", idleSeconds: 20 }, at(59))).toBeNull();
    expect(dueNow({ ...row, status: "Creating", idleSeconds: 20 }, at(60))).toBe("expire");
  });

  it("keeps ended instances for ten minutes, so that the reason can be read", () => {
    for (const status of ["Failed", "Terminated"] as const) {
      expect(dueNow({ ...row, status }, at(599))).toBeNull();
      expect(dueNow({ ...row, status }, at(600))).toBe("forget");
    }
  });
});

describe("alarms", () => {
  it("fire once at their time, also when it is further away than a Node timer can wait", () => {
    vi.useFakeTimers();
    try {
      const rung: string[] = [];
      const alarms = new Alarms((name) => rung.push(name));
      const month = 40 * 86_400_000;
      alarms.set("far", Date.now() + month);
      alarms.set("near", Date.now() + 5);
      alarms.set("moved", Date.now() + 5);
      alarms.set("moved", Date.now() + 50);
      alarms.set("cleared", Date.now() + 5);
      alarms.clear("cleared");
      vi.advanceTimersByTime(10);
      expect(rung).toEqual(["near"]);
      vi.advanceTimersByTime(month - 20);
      expect(rung).toEqual(["near", "moved"]);
      vi.advanceTimersByTime(20);
      expect(rung).toEqual(["near", "moved", "far"]);
      expect(alarms.size).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
