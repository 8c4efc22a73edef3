import { describeNeeding, oldGymnasiumPath } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runPython } from "./python.ts";

const LONG = { timeout: 100_000 };

describeNeeding("python-rl", "Gymnasium with environments of the platform", () => {
  let platform: Platform;

  beforeAll(async () => {
    platform = await startPlatform();
    await publish(platform, projects.echo, { isolation: "shared" });
    await publish(platform, projects.probe);
  });
  afterAll(() => platform?.close());

  const report = (part: string, variables = {}) => runPython("use_gymnasium.py", [platform.controlUrl, part], { variables });

  it.each([
    ["1.4.0", {}],
    // RLlib pins this one.
    ["1.2.2", { PYTHONPATH: oldGymnasiumPath }],
  ])("passes the checker of version %s without a warning", LONG, async (version, variables) => {
    expect(await report("checked", variables)).toBe(version);
  });

  it("plays episodes: the last reward is the score, and a failed tool is an observation", LONG, async () => {
    const goal = "Echo the word 'hello'.";
    expect(await report("episodes")).toEqual({
      begun: [goal, { task: "greet" }],
      tools: ["echo", "remember"],
      scored: [
        ["hello", expect.any(Number), false, false, { is_error: false }],
        [expect.any(String), expect.any(Number), true, false, { is_error: false, score: 1, components: { said_it: 1, brief: 1 } }],
      ],
      truncated: [
        [expect.any(Number), false, false],
        [expect.any(Number), false, true],
      ],
      // The rewards of an episode add up to its score, also where the environment has step rewards.
      sums: [expect.closeTo(1), expect.closeTo(0.8)],
      wrong: [{ is_error: true }],
      drawn_equal: true,
      split: ["recall", "recall", "recall"],
    });
  });

  it("raises for an episode without a score, and plays the next one", LONG, async () => {
    expect(await report("failures")).toEqual({
      crash: { cause: "sandbox", stage: "play", retryable: true },
      needs_reset: true,
      afterwards: [0, 1],
      setup: { cause: "environment", stage: "start", retryable: false },
    });
  });

  it("runs in vector environments of both kinds", LONG, async () => {
    const expected = [expect.arrayContaining(["Echo the word 'hello'."]), ["greet", "be-brief"], [1, 0.2], [true, true]];
    expect(await report("vectors")).toEqual({ sync: expected, async: expected });
  });

  it("is learned by a small policy, which beats a random one", LONG, async () => {
    const { random, learned } = await report("learner");
    expect(random).toBeLessThan(0.7);
    expect(learned).toBeGreaterThan(0.95);
  });

  it("leaves no instance behind", async () => {
    expect(await platform.demand("GET", "/env-instance/*/list?status=Running")).toEqual([]);
  });
});
