import { describe, expect, it } from "vitest";
import { Lifecycle } from "./lifecycle.ts";

function open(drainMs: number | null = null) {
  const done: string[] = [];
  const logFailure = (message: string) => (error: unknown) => void done.push(`${message}: ${(error as Error).message}`);
  const lifecycle = new Lifecycle({ drainMs, logFailure });
  return { done, lifecycle, does: (name: string) => async () => void done.push(name) };
}

describe("closing", () => {
  it("takes the steps in their order, whatever the order of their registration", async () => {
    const { done, lifecycle, does } = open(1);
    for (const step of ["close", "finish", "stop", "refuse", "retire"] as const) lifecycle.on(step, does(step));
    lifecycle.start();
    expect(lifecycle.isRunning).toBe(true);
    const closing = lifecycle.close();
    expect(lifecycle.isRunning).toBe(false);
    await closing;
    expect(done).toEqual(["retire", "refuse", "stop", "finish", "close"]);
  });

  it("closes in reverse order, all despite failures, and only once", async () => {
    const { done, lifecycle } = open();
    for (const n of [1, 2, 3, 4]) {
      lifecycle.on("close", async () => {
        done.push(String(n));
        if (n % 2 === 0) throw new Error(`${n} does not close`);
      });
    }
    await expect(lifecycle.close()).rejects.toThrow("4 does not close");
    await expect(lifecycle.close()).rejects.toThrow("4 does not close");
    expect(done).toEqual(["4", "3", "2", "1"]);
  });

  it("takes the later steps although an earlier one fails", async () => {
    const { done, lifecycle, does } = open();
    lifecycle.on("refuse", () => {
      throw new Error("cannot refuse");
    });
    lifecycle.on("finish", () => Promise.reject(new Error("cannot finish")));
    lifecycle.on("close", does("close"));
    await expect(lifecycle.close()).rejects.toThrow("cannot refuse");
    expect(done).toEqual(["close"]);
  });

  it("waits for rounds that run, and begins no other one", async () => {
    const { done, lifecycle } = open();
    const { promise, resolve } = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    lifecycle.every({
      everyMs: 1,
      failure: "a round failed",
      work: async () => {
        begun.resolve();
        await promise;
        done.push("round");
      },
    });
    lifecycle.on("finish", () => void done.push("finish"));
    lifecycle.start();
    await begun.promise;
    const closing = lifecycle.close();
    resolve();
    await closing;
    expect(done).toEqual(["round", "finish"]);
  });
});

it("retires connections only if the server still accepts requests for a while", async () => {
  const { done, lifecycle, does } = open(null);
  lifecycle.on("retire", does("retire"));
  lifecycle.start();
  await lifecycle.close();
  expect(done).toEqual([]);
});

it("a server that closes without having started has begun no round", async () => {
  const { done, lifecycle, does } = open();
  lifecycle.every({ work: does("round"), everyMs: 1, failure: "", isFirstAtOnce: true });
  lifecycle.on("close", () => void done.push(`started: ${lifecycle.wasStarted}`));
  await lifecycle.close();
  expect(done).toEqual(["started: false"]);
});

it("the first round of work that says so is at the start; one that fails is logged", async () => {
  const { done, lifecycle, does } = open();
  lifecycle.every({ work: does("later"), everyMs: 60_000, failure: "" });
  lifecycle.every({ work: () => Promise.reject(new Error("no store")), everyMs: 60_000, failure: "a round failed", isFirstAtOnce: true });
  lifecycle.start();
  await lifecycle.close();
  expect(done).toEqual(["a round failed: no store"]);
});

it("a cleanup that fails is logged, and does not keep the others from running", async () => {
  const { done, lifecycle, does } = open();
  lifecycle.addSweep(does("instances"));
  lifecycle.addSweep(() => Promise.reject(new Error("the store is full")));
  lifecycle.addSweep(does("links"));
  await lifecycle.sweep();
  expect(done).toEqual(["instances", "a cleanup failed: the store is full", "links"]);
});
