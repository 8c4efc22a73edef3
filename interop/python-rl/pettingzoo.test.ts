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

  it("has the roles of an environment as agents, one after the other and at once", { timeout: 200_000 }, async () => {
    await using platform = await startPlatform();
    const games: string[] = [];
    for (const project of [projects.kuhn, projects.shapes, projects.echo])
      games.push(await publish(platform, project, { isolation: "shared" }));
    const report = await runPython("use_pettingzoo_roles.py", [platform.controlUrl, ...games], { timeoutMs: 180_000 });
    const { log, ends } = report.hand;
    expect(log.map(([agent]: [string]) => agent)).toEqual(["first", "second", "first"]);
    expect(log.map(([, , ...rest]: unknown[]) => rest)).toEqual([
      [0, false, false, [1, 1]],
      [0, false, false, [1, 0]],
      [0, false, false, [1, 1]],
    ]);
    expect(log[0][1]).toMatch(/^Your card is [JQK]\.$/);
    expect(log[2][1]).toMatch(/^\{"card":"[JQK]","history":"pb"\}$/);
    expect(ends).toEqual({ first: [-1, true, false, -1], second: [1, true, false, 1] });
    expect(report.total.first + report.total.second).toBe(0);
    expect(report.at_once).toEqual({
      agents: ["left", "right"],
      infos: { left: { task: "", turn: true }, right: { task: "", turn: true } },
      first: [
        { left: "rounds: rs", right: "rounds: rs" },
        { left: 0, right: 0 },
      ],
      last: [
        { left: 1, right: 0 },
        { left: true, right: true },
        { left: false, right: false },
      ],
    });
    expect(report.refused).toEqual([expect.stringContaining("has no roles"), expect.stringContaining("roles of its own, first, second")]);
    expect(report.played).toEqual({ first: ["oracle", false, expect.any(Number)], second: ["oracle", true, expect.any(Number)] });
    // The instance of the rollout waits for another one.
    const running = (await platform.demand("GET", "/env-instance/*/list?status=Running")) as { labels: Record<string, string> }[];
    expect(running.filter(({ labels }) => "session" in labels)).toEqual([]);
  });
});
