import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { InstanceRow } from "../instances/row.ts";
import { planSlots } from "./plan.ts";
import type { ReplicaSlot, ServiceRow } from "./row.ts";

const NOW = new Date("2026-01-01T00:10:00Z");
const EARLIER = "2026-01-01T00:00:00.000Z";

function serviceOf(replicas: number, slots: readonly ReplicaSlot[] = [], more: Partial<ServiceRow> = {}): ServiceRow {
  return { id: "shop-svc", replicas, slots, generation: 2, storage: null, ...more } as ServiceRow;
}

function slot(instanceId: string, generation = 2, failures = 0): ReplicaSlot {
  return { instanceId, generation, failures, notBefore: EARLIER };
}

function seenOf(statuses: Readonly<Record<string, InstanceRow["status"]>>, livedMs = 0): Map<string, InstanceRow> {
  const updatedAt = new Date(Date.parse(EARLIER) + livedMs).toISOString();
  return new Map(Object.entries(statuses).map(([id, status]) => [id, { id, status, createdAt: EARLIER, updatedAt } as InstanceRow]));
}

function plan(row: ServiceRow, seen: Map<string, InstanceRow> = new Map()): ReplicaSlot[] {
  let count = 0;
  return planSlots(row, seen, NOW, () => `new-${++count}`);
}

describe("the slots of a service", () => {
  it("match the number of replicas, and stay while these live", () => {
    expect(plan(serviceOf(2)).map(({ instanceId }) => instanceId)).toEqual(["new-1", "new-2"]);
    const slots = [slot("a"), slot("b")];
    expect(plan(serviceOf(2, slots), seenOf({ a: "Running", b: "Creating" }))).toEqual(slots);
  });

  it("of replicas that do not run are removed first if there are too many", () => {
    const slots = [slot("a"), slot("b"), slot("c")];
    const left = plan(serviceOf(1, slots), seenOf({ a: "Creating", b: "Running", c: "Creating" }));
    expect(left.map(({ instanceId }) => instanceId)).toEqual(["b"]);
  });

  it("are refilled at once after a deletion, and with growing delays after failures", () => {
    const [ended] = plan(serviceOf(1, [slot("a")]), seenOf({ a: "Terminated" }));
    expect(ended).toEqual({ instanceId: "new-1", generation: 2, failures: 0, notBefore: NOW.toISOString() });
    const pauses = [0, 1, 5, 20].map((failures) => {
      const [next] = plan(serviceOf(1, [slot("a", 2, failures)]), seenOf({ a: "Failed" }));
      return Date.parse(String(next?.notBefore)) - NOW.getTime();
    });
    expect(pauses).toEqual([1_000, 2_000, 32_000, 60_000]);
    const [steady] = plan(serviceOf(1, [slot("a", 2, 7)]), seenOf({ a: "Failed" }, 60_000));
    expect(steady?.failures).toBe(0);
  });

  it("of an old generation are kept until new ones run, one by one", () => {
    const old = [slot("a", 1), slot("b", 1)];
    const running = { a: "Running", b: "Running" } as const;
    const first = plan(serviceOf(2, old), seenOf(running));
    expect(first.map(({ instanceId }) => instanceId)).toEqual(["a", "b", "new-1"]);
    const second = plan(serviceOf(2, [...old, slot("c")]), seenOf({ ...running, c: "Running" }));
    expect(second.map(({ instanceId }) => instanceId)).toEqual(["a", "c", "new-1"]);
    const third = plan(serviceOf(2, [slot("a", 1), slot("c"), slot("d")]), seenOf({ a: "Running", c: "Running", d: "Running" }));
    expect(third.map(({ instanceId }) => instanceId)).toEqual(["c", "d"]);
  });

  it("of an old generation are removed first if the service has storage", () => {
    const next = plan(serviceOf(1, [slot("a", 1)], { storage: "data" }), seenOf({ a: "Running" }));
    expect(next.map(({ instanceId }) => instanceId)).toEqual(["new-1"]);
  });

  it("of a new generation that do not run yet are removed if the number is reduced while old ones serve", () => {
    const slots = [slot("a", 1), slot("b", 1), slot("c"), slot("d")];
    const left = plan(serviceOf(2, slots), seenOf({ a: "Running", b: "Running", c: "Creating", d: "Creating" }));
    expect(left.map(({ instanceId }) => instanceId)).toEqual(["a", "b", "c"]);
  });

  it("never exceed the requested number by more than one, and are stable once everything runs", () => {
    const statuses = fc.constantFrom<InstanceRow["status"]>("Creating", "Running", "Failed", "Terminated");
    const before = fc.array(fc.record({ status: statuses, generation: fc.constantFrom(1, 2) }), { maxLength: 6 });
    fc.assert(
      fc.property(before, fc.integer({ min: 0, max: 5 }), (given, replicas) => {
        let slots = given.map(({ generation }, at) => slot(`s${at}`, generation));
        let seen = seenOf(Object.fromEntries(given.map(({ status }, at) => [`s${at}`, status])));
        let count = 0;
        for (let round = 0; round < 20; round++) {
          slots = planSlots(serviceOf(replicas, slots), seen, NOW, () => `n${++count}`);
          expect(slots.length).toBeLessThanOrEqual(replicas + 1);
          seen = seenOf(Object.fromEntries(slots.map(({ instanceId }) => [instanceId, "Running"])));
        }
        expect(slots.map(({ generation }) => generation)).toEqual(Array.from({ length: replicas }, () => 2));
        expect(planSlots(serviceOf(replicas, slots), seen, NOW, () => "another")).toEqual(slots);
      }),
      { numRuns: 1_000 },
    );
  });
});
