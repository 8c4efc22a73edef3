import { expect, it } from "vitest";
import { Background } from "./background.ts";

it("a cleanup that fails is logged, and does not keep the others from running", async () => {
  const done: string[] = [];
  const none = { tidy: async () => {}, close: async () => {} };
  const sweep = (name: string) => async () => void done.push(name);
  const background = new Background({
    reconciler: none,
    rollouts: none,
    sweeps: [sweep("instances"), () => Promise.reject(new Error("the store is full")), sweep("links")],
    roundMs: 60_000,
    logFailure: (message) => (error) => void done.push(`${message}: ${(error as Error).message}`),
  });
  await background.sweep();
  expect(done).toEqual(["instances", "a cleanup failed: the store is full", "links"]);
});
