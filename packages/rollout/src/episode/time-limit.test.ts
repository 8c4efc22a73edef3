import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TimeLimit } from "./time-limit.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("ends later by the time that is added, and by half an hour in total at the most", () => {
  using limit = new TimeLimit(1_000, Date.now);
  limit.extend(500);
  vi.advanceTimersByTime(1_499);
  expect(limit.signal.aborted).toBe(false);
  for (let pauses = 0; pauses < 1_000; pauses++) limit.extend(9_999_999_000);
  vi.advanceTimersByTime(30 * 60_000 - 500);
  expect(limit.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(limit.signal.aborted).toBe(true);
});
