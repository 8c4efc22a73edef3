import { describeNeeding } from "@aenv/testing";
import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { runPython } from "./python.ts";

describeNeeding("python-rl", "PettingZoo with environments of the platform", () => {
  it("passes the API test; agents have their own tools and rewards; a lost sandbox raises", { timeout: 100_000 }, async () => {
    await using platform = await startPlatform();
    await publish(platform, projects.echo, { isolation: "shared" });
    await publish(platform, projects.probe);
    const goal = "Echo the word 'hello'.";
    expect(await runPython("use_pettingzoo.py", [platform.controlUrl])).toEqual({
      played: {
        begun: [
          { speaker: goal, keeper: goal },
          { speaker: { task: "greet" }, keeper: { task: "greet" } },
        ],
        first: [
          { speaker: "there is no tool 'remember'; there are: echo", keeper: expect.stringContaining("blue") },
          { speaker: { is_error: true }, keeper: { is_error: false } },
        ],
        last: [{ speaker: "hello", keeper: "" }, expect.objectContaining({ speaker: false }), { speaker: true, keeper: true }],
        // The speaker gets its component of the score, the keeper all of it.
        sums: { speaker: 1, keeper: 1 },
        agents: [],
      },
      failed: ["sandbox", "play"],
    });
    expect(await platform.demand("GET", "/env-instance/*/list?status=Running")).toEqual([]);
  });
});
