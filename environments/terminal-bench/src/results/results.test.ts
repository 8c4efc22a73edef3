import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTrajectory } from "../atif/trajectory.ts";
import { commandTrajectory, joinedTrajectory } from "../atif/write.ts";
import { TrialFailure } from "../trial/failure.ts";
import { NO_MULTIPLIERS } from "../trial/plan/timeouts.ts";
import { readJob, writeJob, writeTrial, writeTrialConfig } from "./job-folder.ts";
import { jobResultOf, readJobResult, writeJobResult } from "./job-result.ts";
import { evalKey, jobName, trialName, verifierSessionId } from "./names.ts";
import { trialResultOf } from "./report.ts";
import { trialConfig } from "./trial-config.ts";
import { readTrialResult, type TrialResult, writeTrialResult } from "./trial-result.ts";

const progress = {
  id: "j",
  startedAt: "s",
  updatedAt: "u",
  finishedAt: null,
  totalTrials: 4,
  runningTrials: 1,
  cancelledTrials: 0,
  retries: 0,
};

function trial(name: string, task: string, rewards: Record<string, number> | null, failure: Error | null = null): TrialResult {
  const identity = {
    id: name,
    taskName: task,
    trialName: name,
    trialUri: "file:///x",
    taskId: { path: task },
    source: "set",
    verifierMode: "shared" as const,
    taskChecksum: "c",
    config: {},
    startedAt: 0,
    finishedAt: 1000,
  };
  return trialResultOf(
    identity,
    { name: "nop", version: "1.0.0", model: "acme/coder" },
    { environmentSetup: null, steps: [], rewards, integers: [], failure },
  );
}

describe("a trial's result", () => {
  it("is read back as it was written, with floats as Python writes them", () => {
    const result = trial("a__1", "a", { reward: 1, speed: 0.5 }, new TrialFailure("AgentTimeoutError", "too slow"));
    const written = writeTrialResult({ ...result, verifier_result: { rewards: { reward: 1, speed: 0.5, count: 3 }, integers: ["count"] } });
    expect(written).toContain('"reward": 1.0,');
    expect(written).toContain('"count": 3');
    expect(readTrialResult(written)).toEqual({
      ...result,
      verifier_result: { rewards: { reward: 1, speed: 0.5, count: 3 }, integers: ["count"] },
    });
  });

  it("of an old release may lack keys", () => {
    const old = {
      id: "x",
      task_name: "t",
      trial_name: "t__1",
      task_id: { path: "p" },
      agent_info: { name: "a", version: "1" },
      unknown: 1,
    };
    expect(readTrialResult(JSON.stringify(old))).toMatchObject({ verifier_result: null, exception_info: null, step_results: null });
  });
});

describe("a job's result", () => {
  it("counts trials with rewards, errors and pass@k by evaluation", () => {
    const trials = [
      trial("a1", "a", { reward: 1 }),
      trial("a2", "a", { reward: 0 }),
      trial("a3", "a", null, new TrialFailure("VerifierTimeoutError", "x")),
    ];
    const { stats } = jobResultOf(trials, progress);
    expect(stats).toMatchObject({ n_completed_trials: 3, n_errored_trials: 1, n_pending_trials: 0, n_running_trials: 1 });
    expect(stats.evals).toEqual({
      nop__coder__set: {
        n_trials: 2,
        n_errors: 1,
        metrics: [{ mean: 1 / 3 }],
        pass_at_k: { "2": expect.closeTo(2 / 3) },
        reward_stats: { reward: { "1.0": ["a1"], "0.0": ["a2"] } },
        exception_stats: { VerifierTimeoutError: ["a3"] },
      },
    });
  });

  it("is read back as it was written, and from old keys", () => {
    const result = jobResultOf([trial("a1", "a", { x: 0.5, y: 1 })], progress, ["mean", "max"]);
    expect(readJobResult(writeJobResult(result))).toEqual(result);
    expect(readJobResult('{"id":"x","started_at":"s","n_total_trials":2,"stats":{"n_trials":2,"n_errors":1}}').stats).toMatchObject({
      n_completed_trials: 2,
      n_errored_trials: 1,
    });
  });
});

describe("a job's folder", () => {
  it("has trials with results, and those that were interrupted", async () => {
    using tree = temporaryTree();
    const input = {
      task: { path: "a", source: null },
      trialName: "a1",
      trialsFolder: tree.path,
      multipliers: NO_MULTIPLIERS,
      agent: { name: "nop", model: null, env: {} },
      verifier: { isDisabled: false, env: {} },
      environment: { type: "docker", env: {} },
      artifacts: [],
      jobId: null,
    };
    for (const name of ["a1", "a2"]) await writeTrialConfig(join(tree.path, name), trialConfig(input));
    await writeTrial(join(tree.path, "a1"), trial("a1", "a", null, new Error("broken")));
    await writeJob(tree.path, jobResultOf([], progress), { job_name: "j" });
    mkdirSync(join(tree.path, "notes"));
    const job = await readJob(tree.path);
    expect(job.trials.map(({ result }) => result.exception_info?.exception_message)).toEqual(["broken"]);
    expect(job.unfinished).toEqual([join(tree.path, "a2")]);
    expect(job.result?.n_total_trials).toBe(4);
  });
});

describe("names", () => {
  it("of trials are short and end with seven characters", () => {
    fc.assert(fc.property(fc.stringMatching(/^[a-z_-]{1,50}$/), (task) => /^.{0,32}__[2-9A-HJ-NP-Za-km-z]{7}$/.test(trialName(task))));
    expect(trialName("a-task_-", () => 0)).toBe("a-task__2222222");
  });

  it("of jobs, evaluations and verifiers are those of the reference", () => {
    expect(jobName(new Date(2026, 0, 2, 3, 4, 5))).toBe("2026-01-02__03-04-05");
    expect([evalKey("a", "p/m", "d"), evalKey("a", null, null)]).toEqual(["a__m__d", "a__adhoc"]);
    expect(verifierSessionId("t 1", null, () => "")).toBe("t-1__verifier__trial");
    expect(verifierSessionId("t".repeat(80), "s", () => "0123456789")).toHaveLength(63);
  });
});

describe("trajectories", () => {
  it("of commands and of several steps are valid", () => {
    const one = commandTrajectory({ name: "oracle", version: "1.0.0" }, "s", "Do it.", [{ command: "ls", output: "" }]);
    const joined = joinedTrajectory("t__1", [
      { step: "a", document: one },
      { step: "b", document: one },
    ]);
    expect(parseTrajectory(one).steps).toHaveLength(2);
    expect(parseTrajectory(joined).steps.map(({ step_id, extra }) => [step_id, extra?.harbor_step_name])).toEqual([
      [1, "a"],
      [2, "a"],
      [3, "b"],
      [4, "b"],
    ]);
  });
});
