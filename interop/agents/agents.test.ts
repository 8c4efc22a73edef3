import { join } from "node:path";
import { describeNeeding, scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { readTrajectories } from "aenvironment/rollout";
import { expect, it } from "vitest";
import { playEcho } from "./play-echo.ts";

const here = import.meta.dirname;

describeNeeding("frameworks", "an agent of a framework in a rollout", () => {
  it.each(["openai-agents.ts", "vercel-ai.ts"])(
    "%s: the trajectory has what the model saw, and a score",
    { timeout: 60_000 },
    async (file) => {
      using tree = temporaryTree();
      await using model = await scriptedOpenAi([
        {
          text: "One moment.",
          toolCalls: [
            { name: "echo", arguments: { text: "well" } },
            { name: "echo", arguments: { text: "hello" } },
          ],
        },
        "Done.",
      ]);
      const agent = [
        "--agent",
        "module",
        "--agent-file",
        join(here, file),
        "--model",
        "m",
        "--base-url",
        model.baseUrl,
        "--model-key",
        "secret",
      ];
      const trajectories = [];
      const path = await playEcho(tree.path, ["--task", "greet", ...agent]);
      for await (const one of readTrajectories(path)) trajectories.push(one);
      const [trajectory] = trajectories;
      expect(trajectories).toHaveLength(1);
      expect(trajectory).toMatchObject({ outcome: { kind: "scored", reward: 0.8 }, stop_reason: "done" });
      expect(trajectory?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "tool", "assistant"]);
      expect(trajectory?.messages.slice(-3).map(({ content }) => content)).toEqual(["well", "hello", "Done."]);
      expect(trajectory?.turns.map(({ message, conversation }) => [message, conversation])).toEqual([
        [2, undefined],
        [5, undefined],
      ]);
      expect(trajectory?.offered_tools?.map(({ name }) => name)).toEqual(["echo", "remember"]);
      expect(trajectory?.conversations).toBeUndefined();
      expect(JSON.stringify(trajectory)).not.toContain("secret");
    },
  );
});
