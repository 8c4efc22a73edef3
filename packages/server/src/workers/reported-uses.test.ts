import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { InstanceRow } from "../instances/row.ts";
import { ReportedUses } from "./reported-uses.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const row = { id: "i", idleSeconds: 5 } as InstanceRow;

function open() {
  const told: string[] = [];
  const uses = new ReportedUses({ onUsed: ({ id }) => told.push(`used ${id}`), onUnused: (id) => told.push(`unused ${id}`) });
  return { told, uses };
}

it("calls in quick succession are reported as one use, which ends a moment after the last of them", () => {
  const { told, uses } = open();
  for (let call = 0; call < 100; call++) {
    uses.begin(row);
    vi.advanceTimersByTime(20);
    uses.end(row);
  }
  expect(told).toEqual(["used i"]);
  vi.advanceTimersByTime(250);
  expect(told).toEqual(["used i", "unused i"]);
  uses.begin(row);
  expect(told).toEqual(["used i", "unused i", "used i"]);
});

it("an instance is used as long as one of its calls is in progress", () => {
  const { told, uses } = open();
  uses.begin(row);
  uses.begin(row);
  uses.end(row);
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual(["used i"]);
  uses.end(row);
  vi.advanceTimersByTime(250);
  expect(told).toEqual(["used i", "unused i"]);
});

it("every call to a frozen instance is reported, and no call to one that may be idle for ever", () => {
  const { told, uses } = open();
  uses.begin({ ...row, isFrozen: true });
  uses.begin({ ...row, isFrozen: true });
  uses.begin({ ...row, id: "unwatched", idleSeconds: null });
  uses.end({ ...row, id: "unwatched", idleSeconds: null });
  expect(told).toEqual(["used i", "used i"]);
});
