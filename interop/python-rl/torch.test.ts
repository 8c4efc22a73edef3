import { describeNeeding, torchPythonPath } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { clientPath, runPython } from "./python.ts";

const LONG = { timeout: 600_000 };

describeNeeding("torch", "real learners on torch", () => {
  let platform: Platform;

  beforeAll(async () => {
    platform = await startPlatform();
    await publish(platform, projects.echo, { isolation: "shared" });
    await publish(platform, projects.probe);
  });
  afterAll(() => platform?.close());

  const train = (part: string) => {
    const variables = { PYTHONPATH: clientPath, TRL_EXPERIMENTAL_SILENCE: "1", CUDA_VISIBLE_DEVICES: "", HF_HUB_OFFLINE: "1" };
    return runPython("use_torch.py", [platform.controlUrl, part], { python: torchPythonPath, variables, timeoutMs: 500_000 });
  };

  it("TRL's GRPOTrainer leaves an episode without a score out of its group, and trains on the others", LONG, async () => {
    const { rewards, advantages, ...rest } = await train("trl");
    // Solved; failed by the agent; the sandbox died; nothing was tried.
    expect(rewards).toEqual([1, 0, null, 0]);
    expect(advantages).toEqual([expect.any(Number), expect.any(Number), 0, expect.any(Number)]);
    expect(advantages[0]).toBeGreaterThan(0);
    expect(advantages[1]).toBeLessThan(0);
    expect(rest).toMatchObject({ changed: true, finite: true, masked: [true, true, true, false] });
  });

  it("PPO of Stable-Baselines3 learns through Menu, and beats a random policy", LONG, async () => {
    const { random, learned } = await train("sb3");
    expect(random).toBeLessThan(0.7);
    expect(learned).toBeGreaterThan(0.95);
  });
});
