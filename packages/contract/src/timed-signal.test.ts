import { queryObjects } from "node:v8";
import { afterEach, expect, it, vi } from "vitest";
import { TimedSignal } from "./timed-signal.ts";

const HOUR_MS = 3_600_000;

afterEach(() => void vi.useRealTimers());

it("aborts after the time, with a TimeoutError", () => {
  vi.useFakeTimers();
  using limit = new TimedSignal(HOUR_MS);
  vi.advanceTimersByTime(HOUR_MS - 1);
  expect(limit.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(limit.signal.reason).toMatchObject({ name: "TimeoutError" });
  expect(limit.isOver).toBe(true);
});

it("aborts after the time for the reason that it is given", () => {
  vi.useFakeTimers();
  using limit = new TimedSignal(1, undefined, () => "late");
  vi.advanceTimersByTime(1);
  expect(limit.signal.reason).toBe("late");
});

it("aborts with another signal and for its reason, also one that was aborted before", () => {
  const other = new AbortController();
  using limit = new TimedSignal(HOUR_MS, other.signal);
  expect(limit.signal.aborted).toBe(false);
  other.abort("enough");
  using later = new TimedSignal(HOUR_MS, other.signal);
  for (const one of [limit, later]) expect([one.signal.reason, one.isOver]).toEqual(["enough", false]);
});

it("does not abort any more once it is disposed", () => {
  vi.useFakeTimers();
  const other = new AbortController();
  const limit = new TimedSignal(1, other.signal);
  limit[Symbol.dispose]();
  other.abort();
  vi.advanceTimersByTime(HOUR_MS);
  expect([limit.signal.aborted, limit.isOver]).toEqual([false, false]);
});

// Before: of `AbortSignal.any` with `AbortSignal.timeout`, all were kept until the hour was over, with 0.8 KB each.
it("keeps nothing in memory once it is disposed, although its time is not over and the other signal lives on", () => {
  const other = new AbortController();
  const before = queryObjects(AbortSignal) as number;
  for (let n = 0; n < 100; n++) {
    using limit = new TimedSignal(HOUR_MS, other.signal);
    limit.signal.addEventListener("abort", () => {});
  }
  expect(queryObjects(AbortSignal)).toBeLessThan(before + 10);
});
