import {
  type ComponentName,
  describeNeeding,
  type ModelRequest,
  pythonVerifiersPath,
  type ScriptedOpenAi,
  type ScriptedTurn,
  scriptedOpenAi,
} from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type PythonOptions, runPython } from "./python.ts";

const LONG = { timeout: 100_000 };
const CALL = '<call>echo {"text":"hello"}<end>';
const REPLY = "Done.<end>";
const MODEL_FAILED = expect.stringMatching(/unscored \(model, at play\): .*answered 400: out of order/);

/** An episode of two turns. */
const plays = ({ turn }: ModelRequest): ScriptedTurn =>
  turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "Done.";

/** A platform with an environment, and three models: a good one, one that fails, and one whose chat template drifts. */
function withModels(
  component: ComponentName,
  title: string,
  body: (play: (framework: string, options?: PythonOptions) => Promise<Report>) => void,
): void {
  describeNeeding(component, title, () => {
    let platform: Platform;
    let models: ScriptedOpenAi[] = [];
    beforeAll(async () => {
      platform = await startPlatform();
      await publish(platform, projects.echo);
      models = [
        await scriptedOpenAi(plays, { tokens: { engine: "sglang", weightVersion: "4" } }),
        await scriptedOpenAi(() => ({ status: 400, message: "out of order" }), { tokens: { engine: "vllm" } }),
        await scriptedOpenAi(plays, { tokens: { engine: "vllm", drifts: true } }),
      ];
    });
    afterAll(async () => {
      await platform?.close();
      await Promise.all(models.map((model) => model.close()));
    });
    body(async (framework, options = {}) => {
      const [good, broken, drifting] = models.map(({ baseUrl }) => baseUrl);
      const variables = { AENV_SYSTEM_URL: platform.controlUrl, AENV_API_KEY: "", MODEL_KEY: "k" };
      const report = await runPython("use_rollouts.py", [framework, platform.controlUrl, JSON.stringify({ good, broken, drifting })], {
        ...options,
        variables,
      });
      expect(await platform.demand("GET", "/env-instance/*/list?status=Failed")).toEqual([]);
      return report;
    });
  });
}

// biome-ignore lint/suspicious/noExplicitAny: each framework reports its own objects
type Report = any;

withModels("python-rl", "an episode through the Python modules for trainers", (play) => {
  it("is a sample of slime; an unscored one is a stand-in that the filter drops, a drifting one is two samples", LONG, async () => {
    const scored = { reward: 1, status: "completed", removed: false };
    expect(await play("slime")).toEqual({
      good: { ...scored, trained: CALL + REPLY, versions: ["4", "4"], rollout_id: null },
      broken: { trained: "", reward: null, status: "failed", removed: true, versions: [], rollout_id: null },
      drifting: [
        { ...scored, trained: CALL, versions: [], rollout_id: 7 },
        { ...scored, trained: REPLY, versions: [], rollout_id: 7 },
      ],
      kept: true,
      dropped: [false, "unscored"],
    });
  });

  it("has a reward for miles, whose reward function raises for an unscored one", LONG, async () => {
    expect(await play("miles")).toEqual({ good: 1, broken: MODEL_FAILED, drifting: 1 });
  });

  it("has a float for AReaL, and raises if it is unscored", LONG, async () => {
    expect(await play("areal")).toEqual({ good: [1, "float"], broken: MODEL_FAILED, drifting: [1, "float"] });
  });

  it("is a row for TRL, with the reward None if it is unscored or has several sequences", LONG, async () => {
    expect(await play("trl")).toEqual({
      good: { trained: [CALL + REPLY, CALL + REPLY], rewards: [1, 1], aligned: true },
      broken: { trained: ["", ""], rewards: [null, null], aligned: true },
      drifting: { trained: ["", ""], rewards: [null, null], aligned: true },
    });
  });

  it("is a training trace of openenv; an unscored one has no reward and no turns", LONG, async () => {
    const scored = { exit_code: 0, trained: [CALL, REPLY], reward: 1, metrics: { said_it: 1, brief: 1 } };
    expect(await play("openenv")).toEqual({
      good: scored,
      broken: { exit_code: 1, trained: [], reward: null, metrics: { unscored: MODEL_FAILED } },
      drifting: scored,
    });
  });
});

withModels("python-verifiers", "an episode through the plugin for verifiers", (play) => {
  it("is a trace with a reward; an unscored one is not ok and has none", LONG, async () => {
    const tasks = ["echo@1.0.0/greet", "echo@1.0.0/be-brief"];
    const scored = { tasks, ok: true, rewards: { aenv_reward: { score: 1, weight: 1 } }, error: null, calls: 2 };
    expect(await play("verifiers", { python: pythonVerifiersPath })).toEqual({
      good: scored,
      broken: { tasks, ok: false, rewards: { aenv_reward: null }, error: expect.any(String), calls: expect.any(Number) },
      drifting: scored,
    });
  });
});
