import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BenchRun, ResultsOptions } from "@aenv/kit";
import { playedTrajectory } from "../atif/played.ts";
import { packageContent } from "../checksum/package-hash.ts";
import { taskChecksum } from "../checksum/tree-hash.ts";
import { readDatasetFacts } from "../data/dataset-file.ts";
import { TaskLibrary } from "../environment/library.ts";
import { readStoredReport } from "../environment/stored-report.ts";
import { writeJob, writeLock, writeTrial, writeTrialConfig } from "../results/job-folder.ts";
import { type JobResult, jobResultOf } from "../results/job-result.ts";
import { writeJson } from "../results/json.ts";
import { jobLock, type LockedTrial } from "../results/lock.ts";
import { trialResultOf } from "../results/report.ts";
import { trialConfig } from "../results/trial-config.ts";
import type { TrialResult } from "../results/trial-result.ts";
import type { Task } from "../task/model.ts";
import { NO_MULTIPLIERS } from "../trial/plan/timeouts.ts";
import type { TrialReport } from "../trial/report.ts";
import { type VerifierMode, verifierMode } from "../verifier/mode.ts";
import type { FinishedEpisode } from "./episode.ts";
import { nameOf, uuidOf } from "./ids.ts";
import { openMetrics } from "./metrics.ts";
import { openTb1Files } from "./tb1-files.ts";

const VERSION = "1.0.0";

/** Writes the job and trial folders of Harbor, with trajectories in ATIF. */
export async function results(options: ResultsOptions): Promise<{
  episode(episode: FinishedEpisode): Promise<void>;
  end(): Promise<{ readonly summary: readonly (readonly [string, string])[] }>;
}> {
  const { dataFolder, folder, run, taskIds, samples } = options;
  const library = await TaskLibrary.open(dataFolder, null);
  const facts = await readDatasetFacts(dataFolder);
  const source = facts.name ?? library.name;
  const metrics = await openMetrics(facts.metrics, process.env.TERMINAL_BENCH_METRIC_SCRIPTS);
  const tb1 = openTb1Files({ ...options, uuid: uuidOf(run.id), source });
  const done = new Map<string, TrialResult>();
  const job = (finishedAt: string | null, computed: readonly Readonly<Record<string, number>>[] = []): JobResult =>
    jobResultOf(
      [...done.values()],
      {
        id: uuidOf(run.id),
        startedAt: run.startedAt.toISOString(),
        updatedAt: finishedAt ?? new Date().toISOString(),
        finishedAt,
        totalTrials: taskIds.length * samples,
        runningTrials: 0,
        cancelledTrials: 0,
        retries: 0,
      },
      metrics.types,
      computed,
    );
  const config = { job_name: run.id, jobs_dir: dirname(folder), n_attempts: samples, agents: [{ name: run.agent, model_name: run.model }] };
  await writeLock(folder, await lockOf(options, library, source));
  return {
    episode: async (episode) => {
      if (episode.taskId === null) return;
      const task = await library.get(episode.taskId).catch(() => null);
      if (task === null) return;
      const name = nameOf(task, run, episode.taskId, episode.sample);
      const result = await writeEpisode({ task, source, run, folder, name, episode });
      done.set(name, result);
      await writeJob(folder, job(null), config);
      if (task.format === "terminal-bench-1") await tb1.add(task, episode, result);
    },
    end: async () => {
      const rewards = [...done.values()].map(({ verifier_result }) => verifier_result?.rewards ?? null);
      const { computed, failures } = await metrics.compute(rewards);
      await writeJob(folder, job(new Date().toISOString(), computed), config);
      const tb1Folder = await tb1.end();
      const errors = [...done.values()].filter(({ exception_info }) => exception_info !== null).length;
      return {
        summary: [
          ["trials", `${done.size} of ${taskIds.length * samples}`],
          ["errors", String(errors)],
          ["job folder", folder],
          ...(tb1Folder === null ? [] : [["files of Terminal-Bench 1", tb1Folder] as const]),
          ...failures.map((why) => ["metric not computed", why] as const),
        ],
      };
    },
  };
}

interface Written {
  readonly task: Task;
  readonly source: string | null;
  readonly run: BenchRun;
  readonly folder: string;
  readonly name: string;
  readonly episode: FinishedEpisode;
}

/** The lock names all trials that are planned. */
async function lockOf({ run, taskIds, samples, folder, concurrency }: ResultsOptions, library: TaskLibrary, source: string | null) {
  const trials: LockedTrial[] = [];
  for (let sample = 0; sample < samples; sample++) {
    for (const taskId of taskIds) {
      // A task that cannot be read has no content to lock; its episodes are unscored and say why.
      const task = await library.get(taskId).catch(() => null);
      if (task === null) continue;
      const hash = task.format === "harbor" ? (await packageContent(task.folder)).hash : await taskChecksum(task.folder);
      const config = configOf({ task, source, run, folder, name: nameOf(task, run, taskId, sample) });
      const version = task.config.task?.version ?? null;
      trials.push({ name: task.name, version, verifierMode: modeOf(task), digest: `sha256:${hash}`, source, path: task.folder, config });
    }
  }
  return jobLock({ createdAt: run.startedAt.toISOString(), invocation: null, concurrency, trials });
}

function modeOf({ steps, config }: Task): VerifierMode | null {
  return steps.length > 0 ? null : verifierMode(config, null);
}

function configOf({ task, source, run, folder, name }: Omit<Written, "episode">): Record<string, unknown> {
  return trialConfig({
    task: { path: task.folder, source },
    trialName: name,
    trialsFolder: folder,
    multipliers: NO_MULTIPLIERS,
    agent: { name: run.agent, model: run.model, env: {} },
    verifier: { isDisabled: false, env: {} },
    environment: { type: "docker", env: {} },
    artifacts: task.config.artifacts,
    jobId: uuidOf(run.id),
  });
}

async function writeEpisode({ episode, ...trial }: Written): Promise<TrialResult> {
  const { task, source, run, folder, name } = trial;
  const trialFolder = join(folder, name);
  const { artifacts, trajectory, outcome } = episode;
  const config = configOf(trial);
  await writeTrialConfig(trialFolder, config);
  for (const [path, content] of artifacts) {
    if (path === "trial.json") continue;
    await mkdir(dirname(join(trialFolder, path)), { recursive: true });
    await writeFile(join(trialFolder, path), content);
  }
  const agent = { name: run.agent, version: VERSION, model: run.model };
  await mkdir(join(trialFolder, "agent"), { recursive: true });
  await writeFile(join(trialFolder, "agent/trajectory.json"), writeJson(playedTrajectory(trajectory, agent, trajectory.id)));
  const startedAt = Date.parse(trajectory.timing.started_at);
  const result = trialResultOf(
    {
      id: uuidOf(`${run.id} ${name}`),
      taskName: task.name,
      trialName: name,
      trialUri: `file://${trialFolder}`,
      taskId: { path: task.folder },
      source,
      taskChecksum: await taskChecksum(task.folder),
      verifierMode: modeOf(task),
      config,
      startedAt,
      finishedAt: startedAt + trajectory.timing.total_ms,
    },
    agent,
    reportOf(artifacts, outcome),
  );
  const withTokens = { ...result, agent_result: agentResult(episode) };
  await writeTrial(trialFolder, withTokens);
  return withTokens;
}

/** What the environment stored, or, if it did not come so far, what the platform says. */
function reportOf(artifacts: FinishedEpisode["artifacts"], outcome: FinishedEpisode["outcome"]): TrialReport {
  const stored = artifacts.get("trial.json");
  const failure = outcome.kind === "scored" ? null : Object.assign(new Error(outcome.message), { name: `Unscored:${outcome.cause}` });
  if (stored === undefined) return { environmentSetup: null, steps: [], rewards: null, integers: [], failure };
  const report = readStoredReport(Buffer.from(stored).toString("utf8"));
  return { ...report, failure: report.failure ?? failure };
}

function agentResult({ trajectory: { usage, cost } }: FinishedEpisode): TrialResult["agent_result"] {
  return {
    n_input_tokens: usage.prompt_tokens,
    n_cache_tokens: usage.cached_tokens,
    n_output_tokens: usage.completion_tokens,
    cost_usd: cost,
    model_usage: null,
    rollout_details: null,
    metadata: null,
  };
}
