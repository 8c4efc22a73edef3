import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { startWithin } from "./start-limits.ts";

const hour = 3_600_000;
const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("cut")), { once: true }));

it("a start has its own result and its own error", async () => {
  const limits = { id: "one", signal: new AbortController().signal, timeoutMs: hour, timedOut: () => new Error("late") };
  await expect(startWithin(limits, async () => 7)).resolves.toBe(7);
  await expect(startWithin(limits, () => Promise.reject(new Error("its own")))).rejects.toThrow("its own");
});

it("a start ends with the error of what stopped it, and not with that of the step that was cut", async () => {
  const caller = new AbortController();
  const limits = { id: "one", signal: caller.signal, timeoutMs: hour, timedOut: () => new Error("late"), waitsFor: () => "its init" };
  await expect(startWithin({ ...limits, timeoutMs: 1, timedOut: async () => new Error("late") }, aborted)).rejects.toThrow("late");
  const ended = startWithin(limits, async (signal, fail) => {
    queueMicrotask(() => fail(() => new Error("it ended")));
    queueMicrotask(() => fail(() => new Error("it ended again")));
    return aborted(signal);
  });
  await expect(ended).rejects.toThrow("it ended");
  const cancelling = startWithin(limits, aborted);
  caller.abort();
  await expect(cancelling).rejects.toMatchObject({ code: "request.cancelled", details: { waitedFor: "its init" } });
  await expect(startWithin(limits, async (signal) => signal.throwIfAborted())).rejects.toMatchObject({ code: "request.cancelled" });
});

it("after a start, nothing waits for its signal, and nothing asks for the reason of a later end", async () => {
  const { signal } = new AbortController();
  let asked = 0;
  let later: (error: () => unknown) => void = () => undefined;
  await startWithin({ id: "one", signal, timeoutMs: hour, timedOut: () => asked++ }, async (_, fail) => {
    later = fail;
  });
  later(() => asked++);
  expect(asked).toBe(0);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
