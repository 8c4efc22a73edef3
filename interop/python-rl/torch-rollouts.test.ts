import { torchPythonPath } from "@aenv/testing";
import { expect, it } from "vitest";
import { CALL, describeWithModels, MODEL_FAILED, REPLY } from "./models.ts";

const LONG = { timeout: 600_000 };
const SCRIPT = "use_torch_rollouts.py";
const options = {
  python: torchPythonPath,
  variables: {
    PYTHONPATH: new URL("../../python", import.meta.url).pathname,
    TRL_EXPERIMENTAL_SILENCE: "1",
    CUDA_VISIBLE_DEVICES: "",
    HF_HUB_OFFLINE: "1",
  },
  timeoutMs: 500_000,
};

describeWithModels("torch", "an episode through the Python modules for trainers on torch", (play) => {
  it("is trained on by TRL's GRPOTrainer; an unscored one and a drifting one are left out of their group", LONG, async () => {
    const { advantages, ...rest } = await play(SCRIPT, "trl", { ...options, models: ["good", "wrong", "broken", "drifting"] });
    const solved = CALL + REPLY;
    expect(rest).toEqual({
      trained: [solved, solved.replace("hello", "goodbye"), "", ""],
      rewards: [1, expect.closeTo(0.2), null, null],
      finite: true,
      changed: true,
    });
    expect([advantages[0] > 0, advantages[1] < 0, ...advantages.slice(2)]).toEqual([true, true, 0, 0]);
  });

  it("is an output of verl's agent loop; an unscored one raises, a drifting one is two outputs", LONG, async () => {
    const output = (trained: string, version: number) => ({
      trained,
      logprobs: true,
      score: 1,
      turns: expect.any(Number),
      extra: { reward_extra_info: { "reward/brief": 1, "reward/said_it": 1 }, min_global_steps: version, max_global_steps: version },
    });
    expect(await play(SCRIPT, "verl", options)).toEqual({
      // The engine names its version; without one, it is the trainer's step.
      good: [output(CALL + REPLY, 4)],
      broken: MODEL_FAILED,
      drifting: [output(CALL, 9), output(REPLY, 9)],
    });
  });

  it(
    "is recorded by AReaL's proxy with its reward, also a drifting one; an unscored one raises, or is skipped on request",
    LONG,
    async () => {
      // Each turn is trained on as it was sampled, whether or not the next prompt goes on with it.
      const recorded = { rewards: [expect.closeTo(0.9), 1], trained: [expect.stringContaining("CALL"), expect.stringContaining("Done.")] };
      expect(await play(SCRIPT, "areal", { ...options, models: [] })).toEqual({
        good: { ...recorded, extends: true },
        drifting: { ...recorded, extends: false },
        raised: expect.stringMatching(/^unscored \(model, at play\)/),
        skipped: null,
      });
    },
  );
});
