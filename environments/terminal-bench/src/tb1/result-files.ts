import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { passAtK } from "../metrics/pass-at-k.ts";
import type { TrialResult } from "../results/trial-result.ts";
import type { Task } from "../task/model.ts";
import { parseTestLog } from "./parsers.ts";

/** A trial's `results.json` of Terminal-Bench 1. */
export interface Tb1Result {
  readonly id: string;
  readonly trial_name: string;
  readonly task_id: string;
  readonly instruction: string;
  /** Null if the tests gave no result. */
  readonly is_resolved: boolean | null;
  readonly failure_mode: FailureMode;
  readonly parser_results: Readonly<Record<string, "passed" | "failed">> | null;
  readonly recording_path: string | null;
  readonly total_input_tokens: number | null;
  readonly total_output_tokens: number | null;
  readonly trial_started_at: string | null;
  readonly trial_ended_at: string | null;
  readonly agent_started_at: string | null;
  readonly agent_ended_at: string | null;
  readonly test_started_at: string | null;
  readonly test_ended_at: string | null;
}

export type FailureMode = "unset" | "test_timeout" | "agent_timeout" | "parse_error" | "agent_installation_failed" | "unknown_agent_error";

const FAILURES: Readonly<Record<string, FailureMode>> = {
  VerifierTimeoutError: "test_timeout",
  AgentTimeoutError: "agent_timeout",
  VerifierOutputParseError: "parse_error",
  AgentSetupTimeoutError: "agent_installation_failed",
};

export interface Tb1Trial {
  readonly task: Task;
  readonly taskId: string;
  /** Number of the trial, which counts from 0. */
  readonly sample: number;
  readonly samples: number;
  readonly runId: string;
  readonly result: TrialResult;
  /** What the tests printed; null if they did not run. */
  readonly log: string | null;
}

export function tb1Result({ task, taskId, sample, samples, runId, result, log }: Tb1Trial): Tb1Result {
  const failure = result.exception_info?.exception_type ?? null;
  const parsed = log === null || task.parser === null ? null : parseTestLog(task.parser, log);
  const reward = result.verifier_result?.rewards?.reward;
  return {
    id: result.id,
    trial_name: `${taskId}.${sample + 1}-of-${samples}.${runId}`,
    task_id: taskId,
    instruction: task.instruction,
    is_resolved: reward === undefined ? null : reward === 1,
    failure_mode: failure === null ? "unset" : (FAILURES[failure] ?? "unknown_agent_error"),
    parser_results: parsed === null ? null : Object.fromEntries(parsed),
    recording_path: null,
    total_input_tokens: result.agent_result?.n_input_tokens ?? 0,
    total_output_tokens: result.agent_result?.n_output_tokens ?? 0,
    trial_started_at: result.started_at,
    trial_ended_at: result.finished_at,
    agent_started_at: result.agent_execution?.started_at ?? null,
    agent_ended_at: result.agent_execution?.finished_at ?? null,
    test_started_at: result.verifier?.started_at ?? null,
    test_ended_at: result.verifier?.finished_at ?? null,
  };
}

/** The `results.json` of a run. A trial without a result counts as not resolved. */
export function tb1RunResults(id: string, results: readonly Tb1Result[]): Record<string, unknown> {
  const resolved = results.filter(({ is_resolved }) => is_resolved === true);
  const unresolved = results.filter(({ is_resolved }) => is_resolved !== true);
  return {
    id,
    results,
    pass_at_k: tb1PassAtK(results),
    n_resolved: resolved.length,
    n_unresolved: unresolved.length,
    resolved_ids: resolved.map(({ task_id }) => task_id),
    unresolved_ids: unresolved.map(({ task_id }) => task_id),
    accuracy: results.length === 0 ? 0 : resolved.length / results.length,
  };
}

/** pass@k for powers of two up to the smallest number of trials of a task, and for 5 and 10. */
export function tb1PassAtK(results: readonly Pick<Tb1Result, "task_id" | "is_resolved">[]): Record<string, number> {
  const tasks = [...Map.groupBy(results, ({ task_id }) => task_id).values()];
  const fewest = tasks.length === 0 ? 0 : Math.min(...tasks.map(({ length }) => length));
  const powers = Array.from({ length: 32 }, (_, i) => 2 ** (i + 1));
  const ks = [...new Set([...powers, 5, 10])].filter((k) => k <= fewest).sort((a, b) => a - b);
  const of = (trials: readonly Pick<Tb1Result, "is_resolved">[], k: number) =>
    passAtK(trials.length, trials.filter(({ is_resolved }) => is_resolved === true).length, k);
  return Object.fromEntries(ks.map((k) => [String(k), tasks.reduce((sum, trials) => sum + of(trials, k), 0) / tasks.length]));
}

export interface Tb1Run {
  readonly id: string;
  readonly uuid: string;
  /** The folder of this run. */
  readonly folder: string;
  readonly datasetPath: string;
  readonly datasetName: string | null;
  readonly agent: string;
  readonly model: string | null;
  readonly taskIds: readonly string[];
  readonly samples: number;
  readonly concurrency: number;
  readonly startedAt: string;
  readonly endedAt: string | null;
}

/** The `run_metadata.json` of a run. */
export function tb1Metadata(run: Tb1Run, results: readonly Tb1Result[]): Record<string, unknown> {
  const { accuracy, pass_at_k } = tb1RunResults(run.uuid, results);
  return {
    run_id: run.id,
    uuid: run.uuid,
    dataset_path: run.datasetPath,
    dataset_name: run.datasetName,
    dataset_version: null,
    output_path: run.folder,
    agent_name: run.agent,
    no_rebuild: true,
    cleanup: true,
    log_level: 20,
    task_ids: run.taskIds,
    exclude_task_ids: null,
    n_tasks: run.taskIds.length,
    n_concurrent_trials: run.concurrency,
    n_attempts: run.samples,
    dataset_size: run.taskIds.length,
    accuracy,
    model_name: run.model,
    start_time: run.startedAt,
    end_time: run.endedAt,
    commit_hash: null,
    username: null,
    s3_bucket: null,
    agent_kwargs: {},
    pass_at_k,
    resumed_at: null,
  };
}

/** Writes a trial: its results, and what the tests printed. */
export async function writeTb1Trial({ folder }: Tb1Run, result: Tb1Result, log: string | null): Promise<void> {
  const trial = join(folder, result.task_id, result.trial_name);
  await mkdir(join(trial, "panes"), { recursive: true });
  if (log !== null) await writeFile(join(trial, "panes/post-test.txt"), log);
  await writeFile(join(trial, "results.json"), json(result));
}

export async function writeTb1Run(run: Tb1Run, results: readonly Tb1Result[]): Promise<void> {
  await mkdir(run.folder, { recursive: true });
  await writeFile(join(run.folder, "results.json"), json(tb1RunResults(run.uuid, results)));
  await writeFile(join(run.folder, "run_metadata.json"), json(tb1Metadata(run, results)));
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 4)}\n`;
}
