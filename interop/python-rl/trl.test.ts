import { describeNeeding } from "@aenv/testing";
import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { runPython } from "./python.ts";

describeNeeding("python-rl", "the class for TRL's environment_factory", () => {
  it("has the tools as methods; an episode without a score has the reward None", { timeout: 100_000 }, async () => {
    await using platform = await startPlatform();
    await publish(platform, projects.echo, { isolation: "shared" });
    await publish(platform, projects.probe);
    const over = "the environment has failed; the episode is over";
    expect(await runPython("use_trl.py", [platform.controlUrl])).toEqual({
      name: "EchoSharedEnvironment",
      shape: {
        echo: "(self, text: str, times: Optional[int] = 1) -> str",
        remember: "(self, name: str, text: Optional[str] = None) -> str",
        get_reward: "(self) -> 'Optional[float]'",
        reset: "(self, **row: 'Any') -> 'str'",
      },
      doc: expect.stringMatching(/^\S.*\n\nArgs:\n {4}text: .+\n {4}times: How often to say it\n\nReturns:\n {4}The tool's result\.$/),
      played: {
        begun: "Echo the word 'hello'.",
        answers: ["hello", "Error: nothing is remembered as 'shape'; known: nothing"],
        rewards: [1, 1],
        again: null,
      },
      failed: { lost: ["1", over, over, null], afterwards: 1 },
      refused: "task.not_found",
    });
    expect(await platform.demand("GET", "/env-instance/*/list?status=Running")).toEqual([]);
  });
});
