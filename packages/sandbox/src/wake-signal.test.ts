import { expect, it } from "vitest";
import { Bell } from "./wake-signal.ts";

it("remembers one ring for whoever waits next, and no second one", async () => {
  const bell = new Bell();
  bell.ring();
  bell.ring();
  await bell.wait();
  let isAwake = false;
  const waiting = bell.wait().then(() => {
    isAwake = true;
  });
  await Promise.resolve();
  expect(isAwake).toBe(false);
  bell.ring();
  await waiting;
});

it("wakes by itself when the time is over, and then has not rung", async () => {
  const bell = new Bell();
  await bell.wait(1);
  bell.ring();
  await bell.wait();
});
