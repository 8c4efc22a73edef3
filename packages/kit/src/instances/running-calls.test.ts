import { expect, it } from "vitest";
import { RunningCalls } from "./running-calls.ts";

it("held calls begin when those that ran have ended and the holder lets them", async () => {
  const calls = new RunningCalls();
  const { promise, resolve } = Promise.withResolvers<string>();
  const running = calls.run(() => promise, new AbortController(), undefined, "a call");
  const holding = calls.hold(60_000);
  let hasBegun = false;
  const held = calls.run(() => (hasBegun = true), new AbortController(), undefined, "a call");
  resolve("done");
  const release = await holding;
  expect([await running, hasBegun]).toEqual(["done", false]);
  release();
  expect(await held).toBe(true);
});

it("calls that do not end in time make the instance busy, and held ones go on", async () => {
  const calls = new RunningCalls();
  const { promise, resolve } = Promise.withResolvers<string>();
  const running = calls.run(() => promise, new AbortController(), undefined, "a call");
  const holding = calls.hold(10);
  const held = calls.run(() => "later", new AbortController(), undefined, "a call");
  await expect(holding).rejects.toMatchObject({ code: "instance.busy", retryable: true });
  expect(await held).toBe("later");
  resolve("done");
  expect(await running).toBe("done");
});
