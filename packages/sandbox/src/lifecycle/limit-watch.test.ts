import { expect, it } from "vitest";
import type { ReachedLimit } from "../engine/engine.ts";
import { type LimitUse, LimitWatch, reachedLimits } from "./limit-watch.ts";

const limits = { memoryMb: 128, processes: 20, diskMb: 64 };
const idle: LimitUse = { outOfMemoryKills: 0, processLimitHits: 0, diskFreeKb: 9_000, openFiles: 0, openFilesLimit: 100 };

it("nothing is reached by a sandbox that uses little, or about which nothing is known", () => {
  expect([...reachedLimits(null, idle, limits)]).toEqual([]);
  const unknown = { outOfMemoryKills: null, processLimitHits: null, diskFreeKb: null, openFiles: null, openFilesLimit: null };
  expect([...reachedLimits(idle, unknown, limits)]).toEqual([]);
});

it("each limit has its sentence, and a counter that stays the same is not reported again", () => {
  const all = { outOfMemoryKills: 1, processLimitHits: 3, diskFreeKb: 0, openFiles: 99, openFilesLimit: 100 };
  expect(Object.fromEntries(reachedLimits(idle, all, limits))).toEqual({
    memory: "the kernel ended a process of the sandbox: no more memory (its limit is 128 MB)",
    processes: "the sandbox cannot start more processes and threads (its limit is 20)",
    disk: "the disk of the sandbox is full (its limit is 64 MB)",
    files: "a process of the sandbox cannot open more files (its limit is 100)",
  });
  expect([...reachedLimits(all, { ...all, diskFreeKb: 9_000, openFiles: 3 }, limits).keys()]).toEqual([]);
});

it("a limit that is reached all the time is reported once in ten minutes", async () => {
  const reports: ReachedLimit[] = [];
  let now = 0;
  const watch = new LimitWatch<{ id: string }>({
    periodMs: 1_000,
    measure: async () => ({ ...idle, diskFreeKb: 0 }),
    limitsOf: () => ({ memoryMb: null, processes: null, diskMb: null }),
    report: (reached) => reports.push(reached),
    now: () => now,
  });
  const sandbox = { id: "one" };
  for (; now < 11 * 60_000; now += 60_000) await watch.check(sandbox);
  const reached = { sandboxId: "one", limit: "disk", reason: "the disk of the sandbox is full" };
  expect(reports).toEqual([reached, reached]);
});
