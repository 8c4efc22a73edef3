import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Rounds } from "./periodic-checks.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("visits everyone once in each period, and only a share of them at a time", () => {
  const visits: number[] = [];
  const rounds = new Rounds<number>(1_000, (one) => visits.push(one));
  for (let n = 0; n < 20; n++) rounds.add(n);
  vi.advanceTimersByTime(200);
  expect(visits).toEqual([0, 1, 2, 3]);
  vi.advanceTimersByTime(800);
  expect(visits).toEqual(Array.from({ length: 20 }, (_, n) => n));
  vi.advanceTimersByTime(1_000);
  expect(visits).toHaveLength(40);
  rounds.close();
  expect(vi.getTimerCount()).toBe(0);
});

it("visits nobody who has left, and keeps no timer for nobody", () => {
  const visits: string[] = [];
  const rounds = new Rounds<string>(100, (one) => visits.push(one));
  rounds.add("a");
  rounds.add("b");
  rounds.delete("a");
  vi.advanceTimersByTime(100);
  expect(new Set(visits)).toEqual(new Set(["b"]));
  rounds.delete("b");
  expect(vi.getTimerCount()).toBe(0);
});
