import { expect, it } from "vitest";
import { WakeSignal } from "./wake-signal.ts";

it("keeps one notification for the next waiter, and no second one", async () => {
  const wake = new WakeSignal();
  wake.notify();
  wake.notify();
  await wake.wait();
  let isAwake = false;
  const waiting = wake.wait().then(() => {
    isAwake = true;
  });
  await Promise.resolve();
  expect(isAwake).toBe(false);
  wake.notify();
  await waiting;
});

it("wakes when the time limit is over, and is not notified afterwards", async () => {
  const wake = new WakeSignal();
  await wake.wait(1);
  wake.notify();
  await wake.wait();
});
