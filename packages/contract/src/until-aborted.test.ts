import { expect, it } from "vitest";
import { untilAborted } from "./until-aborted.ts";

it("waits for the work, and no longer than until the signal aborts", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
  expect(await untilAborted(Promise.resolve(1), undefined)).toBe(1);
  await expect(untilAborted(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
  const caller = new AbortController();
  const waiting = untilAborted(new Promise(() => {}), caller.signal);
  caller.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
});

it("rejects for a caller that has gone before, and work that fails later is no unhandled rejection", async () => {
  const work = Promise.withResolvers<never>();
  await expect(untilAborted(work.promise, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  work.reject(new Error("late"));
  await new Promise(setImmediate);
});
