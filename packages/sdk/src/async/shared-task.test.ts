import { describe, expect, it } from "vitest";
import { SharedTask } from "./shared-task.ts";

async function held() {
  const { promise, resolve } = Promise.withResolvers<string>();
  const seen: { signal?: AbortSignal } = {};
  const task = new SharedTask((signal) => {
    seen.signal = signal;
    return promise;
  });
  await Promise.resolve();
  return { task, resolve, signal: seen.signal as AbortSignal };
}

describe("SharedTask", () => {
  it("gives its result to all waiters", async () => {
    const { task, resolve } = await held();
    const both = Promise.all([task.join(), task.join()]);
    resolve("done");
    expect(await both).toEqual(["done", "done"]);
  });

  it("continues when one of two waiters aborts", async () => {
    const { task, resolve, signal } = await held();
    const controller = new AbortController();
    const one = task.join(controller.signal);
    const other = task.join();
    controller.abort(new Error("enough"));
    await expect(one).rejects.toThrow("enough");
    expect(signal.aborted).toBe(false);
    resolve("done");
    expect(await other).toBe("done");
  });

  it("is aborted with the reason of the last waiter", async () => {
    const { task, signal } = await held();
    const controller = new AbortController();
    const only = task.join(controller.signal);
    controller.abort(new Error("enough"));
    await expect(only).rejects.toThrow("enough");
    expect(signal.reason).toEqual(new Error("enough"));
  });

  it("causes no unhandled rejection when it fails without a waiter", async () => {
    const task = new SharedTask(() => Promise.reject(new Error("unheard")));
    await task.settled();
    await expect(task.join()).rejects.toThrow("unheard");
  });
});
