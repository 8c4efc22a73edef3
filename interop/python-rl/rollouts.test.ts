import { pythonVerifiersPath } from "@aenv/testing";
import { expect, it } from "vitest";
import { CALL, describeWithModels, MODEL_FAILED, REPLY } from "./models.ts";

const SCRIPT = "use_rollouts.py";
const LONG = { timeout: 100_000 };

describeWithModels("python-rl", "an episode through the Python modules for trainers", (play, askedOf) => {
  it("is a sample of slime; an unscored one is a stand-in that the filter drops, a drifting one is two samples", LONG, async () => {
    const scored = { reward: 1, status: "completed", removed: false };
    expect(await play(SCRIPT, "slime")).toEqual({
      good: { ...scored, trained: CALL + REPLY, versions: ["4", "4"], rollout_id: null },
      broken: { trained: "", reward: null, status: "failed", removed: true, versions: [], rollout_id: null },
      drifting: [
        { ...scored, trained: CALL, versions: [], rollout_id: 7 },
        { ...scored, trained: REPLY, versions: [], rollout_id: 7 },
      ],
      kept: true,
      dropped: [false, "unscored"],
    });
    // slime's `max_new_tokens` is the chat API's `max_tokens`.
    const asked = expect.objectContaining({ temperature: 1, max_tokens: 9 });
    expect(askedOf("good")).toEqual([asked, asked]);
  });

  it("has a reward for miles, whose reward function raises for an unscored one; an abort reaches all that run", LONG, async () => {
    const report = await play(SCRIPT, "miles", { models: ["good", "broken", "drifting", "silent"] });
    expect(report).toEqual({ good: 1, broken: MODEL_FAILED, drifting: 1, aborted: "cancelled" });
  });

  it("has a float for AReaL, and raises if it is unscored", LONG, async () => {
    expect(await play(SCRIPT, "areal")).toEqual({
      good: [1, "float"],
      broken: MODEL_FAILED,
      drifting: [1, "float"],
      // A trainer that records tokens itself would train on the turns of a failed attempt.
      retries: { service: 1, trainer: 0, areal: 0 },
    });
  });

  it("is an output of verl's agent loop; an unscored one raises, a drifting one is two outputs", LONG, async () => {
    expect(await play(SCRIPT, "verl")).toEqual({
      // The engine names its version; without one, it is the trainer's step.
      good: [{ trained: CALL + REPLY, score: 1, step: 4 }],
      broken: MODEL_FAILED,
      drifting: [
        { trained: CALL, score: 1, step: 9 },
        { trained: REPLY, score: 1, step: 9 },
      ],
    });
  });

  it("is a row for TRL, with the reward None if it is unscored or has several sequences", LONG, async () => {
    expect(await play(SCRIPT, "trl")).toEqual({
      good: { trained: [CALL + REPLY, CALL + REPLY], rewards: [1, 1], aligned: true },
      broken: { trained: ["", ""], rewards: [null, null], aligned: true },
      drifting: { trained: ["", ""], rewards: [null, null], aligned: true },
    });
    expect(askedOf("good")[0]).toMatchObject({ temperature: 1, max_tokens: 4096 });
  });

  it("gives the reward the arguments of its row or of its module", LONG, async () => {
    const report = await play(SCRIPT, "reward_args", { models: ["good"] });
    expect(report).toEqual({ areal: [1, "score", "score"], trl: [[1], [null]] });
  });

  it("is cancelled on the platform when the trainer gives it up", LONG, async () => {
    const report = await play(SCRIPT, "cancelled", { models: ["silent"] });
    expect(report).toEqual({ raised: "CancelledError", kind: "unscored", cause: "cancelled" });
  });

  it("is a training trace of openenv; an unscored one has no reward and no turns", LONG, async () => {
    const scored = { exit_code: 0, trained: [CALL, REPLY], reward: 1, metrics: { said_it: 1, brief: 1 } };
    expect(await play(SCRIPT, "openenv")).toEqual({
      good: scored,
      broken: { exit_code: 1, trained: [], reward: null, metrics: { unscored: MODEL_FAILED } },
      drifting: scored,
      refused: null,
    });
  });
});

describeWithModels("python-verifiers", "an episode through the plugin for verifiers", (play) => {
  it("is a trace with a reward; an unscored one is not ok and has none", LONG, async () => {
    const tasks = ["echo@1.0.0/greet", "echo@1.0.0/be-brief"];
    const scored = { tasks, ok: true, rewards: { aenv_reward: { score: 1, weight: 1 } }, error: null, calls: 2 };
    expect(await play(SCRIPT, "verifiers", { python: pythonVerifiersPath })).toEqual({
      good: scored,
      broken: { tasks, ok: false, rewards: { aenv_reward: null }, error: expect.any(String), calls: expect.any(Number) },
      drifting: scored,
    });
  });
});
