import type { Trajectory } from "@aenv/contract";
import { expect, it } from "vitest";
import { replayOfRun } from "./by-task.ts";

/** A run of one episode, in which a program made a call by itself. */
function runWith(text: string) {
  const call = { id: "1", name: "echo", arguments: { text } };
  const steps = [{ message: null, call, result: { content: [], is_error: false }, started_ms: 1, duration_ms: 2 }];
  const episode = { id: "0-0", task: { id: "greet" }, seed: 1, messages: [], steps, outcome: { kind: "scored", reward: 1 } };
  return {
    name: "run",
    async *trajectories() {
      yield episode as unknown as Trajectory;
    },
  };
}

it("the settings of an agent that plays a run again tell runs apart in which programs made other calls", async () => {
  const settingsOf = async (text: string) => (await replayOfRun(runWith(text), "run")).settings;
  expect(await settingsOf("hello")).toEqual(await settingsOf("hello"));
  expect(await settingsOf("hello")).not.toEqual(await settingsOf("bye"));
});
