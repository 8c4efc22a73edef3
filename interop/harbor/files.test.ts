import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  commandTrajectory,
  jobLock,
  jobResultOf,
  loadTask,
  manifestHash,
  packageContent,
  parseManifest,
  readTrial,
  type TaskConfig,
  TrialFailure,
  taskChecksum,
  trialConfig,
  trialResultOf,
  writeJob,
  writeLock,
  writeTrial,
  writeTrialConfig,
} from "@aenv/terminal-bench/core";
import { describeNeeding, harborPythonPath, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";

const examples = join(import.meta.dirname, "../../environments/terminal-bench/examples/harbor");

const DIGEST = `sha256:${"0".repeat(64)}`;

interface HarborTask {
  readonly config: Record<string, unknown>;
  readonly name: string;
  readonly instruction: string;
  readonly checksum: string;
  readonly digest: string;
}

describeNeeding("harbor", "Harbor and this implementation", () => {
  it("read the same tasks, hashes and results", { timeout: 180_000 }, async () => {
    using tree = temporaryTree();
    const written = await writeExampleJob(tree.path);
    const { stdout } = await promisify(execFile)(harborPythonPath, [join(import.meta.dirname, "read_files.py"), examples, tree.path], {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
      maxBuffer: 16 * 1024 * 1024,
    });
    const seen = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");

    for (const [name, theirs] of Object.entries(seen.tasks as Record<string, HarborTask>)) {
      const folder = join(examples, name);
      const ours = await loadTask(folder);
      expect({ name: ours.name, instruction: ours.instruction }, name).toEqual({ name: theirs.name, instruction: theirs.instruction });
      // Each side may have keys of other editions, which are null. A missing timeout is null here, and 600 seconds there.
      expect(withVerifierTimeouts(ours.config), name).toMatchObject(withoutNulls(theirs.config));
      expect([await taskChecksum(folder), (await packageContent(folder)).hash], name).toEqual([theirs.checksum, theirs.digest]);
    }
    expect(Object.keys(seen.tasks)).toHaveLength(18);
    expect(seen.dataset).toBe(manifestHash(parseManifest(readFileSync(join(examples, "dataset.toml"), "utf8"))));

    expect(seen.lock).toMatchObject({
      n_concurrent_trials: 4,
      schema_version: 3,
      trials: [
        {
          schema_version: 2,
          task: { name: "a", version: "1.0", type: "local", digest: DIGEST },
          verifier: { environment_mode: "shared" },
          agent: { name: "nop", model_name: "acme/coder" },
        },
        {},
      ],
    });
    expect(seen.trials).toEqual([
      { name: "a__1111111", rewards: { reward: 1, speed: 0.5 } },
      { name: "b__2222222", rewards: null },
    ]);
    for (const [i, name] of ["a__1111111", "b__2222222"].entries()) {
      const { task_name, task_checksum, agent_info, verifier_result, verifier_environment_mode, exception_info } = await readTrial(
        join(tree.path, name, "rewritten.json"),
      );
      expect(written[i], name).toMatchObject({ task_name, task_checksum, agent_info, verifier_result, verifier_environment_mode });
      expect(exception_info?.exception_type, name).toBe(written[i]?.exception_info?.exception_type);
    }
  });
});

async function writeExampleJob(folder: string) {
  const trials = [
    { name: "a__1111111", rewards: { reward: 1, speed: 0.5 }, failure: null },
    { name: "b__2222222", rewards: null, failure: new TrialFailure("VerifierTimeoutError", "too slow") },
  ];
  const results = [];
  for (const [i, { name, rewards, failure }] of trials.entries()) {
    const id = `0000000${i}-0000-4000-8000-000000000000`;
    const config = trialConfig({
      task: { path: "/tasks/a", source: "examples" },
      trialName: name,
      trialsFolder: folder,
      multipliers: {
        timeout_multiplier: 1,
        agent_timeout_multiplier: null,
        verifier_timeout_multiplier: null,
        agent_setup_timeout_multiplier: null,
        environment_build_timeout_multiplier: null,
      },
      agent: { name: "nop", model: "acme/coder", env: {} },
      verifier: { isDisabled: false, env: {} },
      environment: { type: "docker", env: {} },
      artifacts: ["/a"],
      jobId: null,
    });
    const identity = {
      id,
      taskName: "a",
      trialName: name,
      trialUri: `file://${folder}/${name}`,
      taskId: { path: "/tasks/a" },
      source: "examples",
      taskChecksum: "0",
      verifierMode: "shared" as const,
      config,
      startedAt: 0,
      finishedAt: 1000,
    };
    const report = { environmentSetup: { startedAt: 0, finishedAt: 500 }, steps: [], rewards, integers: [], failure };
    const result = trialResultOf(identity, { name: "nop", version: "1.0.0", model: "acme/coder" }, report);
    await writeTrialConfig(join(folder, name), config);
    await writeTrial(join(folder, name), result);
    results.push(result);
  }
  const progress = {
    id: "00000009-0000-4000-8000-000000000000",
    startedAt: new Date(0).toISOString(),
    updatedAt: new Date(1000).toISOString(),
    finishedAt: new Date(1000).toISOString(),
    totalTrials: 2,
    runningTrials: 0,
    cancelledTrials: 0,
    retries: 0,
  };
  await writeJob(folder, jobResultOf(results, progress));
  const locked = results.map(({ config }) => ({
    name: "a",
    version: "1.0",
    verifierMode: "shared" as const,
    digest: DIGEST,
    source: "examples",
    path: "/tasks/a",
    config,
  }));
  // A key of releases before 0.25.
  const invocation = ["aenv", "bench", "run", "--ae", "API_KEY=secret-1234"];
  await writeLock(folder, jobLock({ createdAt: progress.startedAt, invocation, concurrency: 4, trials: locked }));
  const trajectory = commandTrajectory({ name: "oracle", version: "1.0.0" }, "a__1111111", "Do it.", [{ command: "ls", output: "a\n" }]);
  writeFileSync(join(folder, "trajectory.json"), JSON.stringify(trajectory));
  return results;
}

function withVerifierTimeouts({ verifier, steps, ...config }: TaskConfig): unknown {
  const filled = (one: TaskConfig["verifier"]) => ({ ...one, timeout_sec: one.timeout_sec ?? 600 });
  return { ...config, verifier: filled(verifier), steps: steps?.map((step) => ({ ...step, verifier: filled(step.verifier) })) ?? null };
}

function withoutNulls<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_, one) => (one === null ? undefined : one)));
}
