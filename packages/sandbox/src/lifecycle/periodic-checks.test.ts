import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PeriodicChecks } from "./periodic-checks.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("checks every member once in each period, and only a share of them at a time", () => {
  const checked: number[] = [];
  const checks = new PeriodicChecks<number>(1_000, (one) => checked.push(one));
  for (let n = 0; n < 20; n++) checks.add(n);
  vi.advanceTimersByTime(200);
  expect(checked).toEqual([0, 1, 2, 3]);
  vi.advanceTimersByTime(800);
  expect(checked).toEqual(Array.from({ length: 20 }, (_, n) => n));
  vi.advanceTimersByTime(1_000);
  expect(checked).toHaveLength(40);
  checks.close();
  expect(vi.getTimerCount()).toBe(0);
});

it("does not check a removed member, and keeps no timer without members", () => {
  const checked: string[] = [];
  const checks = new PeriodicChecks<string>(100, (one) => checked.push(one));
  checks.add("a");
  checks.add("b");
  checks.delete("a");
  vi.advanceTimersByTime(100);
  expect(new Set(checked)).toEqual(new Set(["b"]));
  checks.delete("b");
  expect(vi.getTimerCount()).toBe(0);
});
