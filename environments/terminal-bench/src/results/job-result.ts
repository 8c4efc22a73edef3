import { floatRepr } from "@aenv/benchmark";
import { isTable, list, map, object } from "../fields/containers.ts";
import { before, optional, withDefault } from "../fields/field.ts";
import { float, int, text } from "../fields/scalars.ts";
import { type MetricType, metric } from "../metrics/metrics.ts";
import { passAtKs } from "../metrics/pass-at-k.ts";
import { Float, writeJson } from "./json.ts";
import { evalKey } from "./names.ts";
import { type TrialResult, trialTokens } from "./trial-result.ts";

const evalStats = object({
  n_trials: withDefault(int, 0),
  n_errors: withDefault(int, 0),
  metrics: withDefault(list(map(float)), []),
  pass_at_k: withDefault(map(float), {}),
  reward_stats: withDefault(map(map(list(text))), {}),
  exception_stats: withDefault(map(list(text)), {}),
});

export type EvalStats = ReturnType<typeof evalStats.parse>;

const stats = object({
  n_completed_trials: withDefault(int, 0),
  n_errored_trials: withDefault(int, 0),
  n_running_trials: withDefault(int, 0),
  n_pending_trials: withDefault(int, 0),
  n_cancelled_trials: withDefault(int, 0),
  n_retries: withDefault(int, 0),
  evals: withDefault(map(evalStats), {}),
  n_input_tokens: optional(int),
  n_cache_tokens: optional(int),
  n_output_tokens: optional(int),
  cost_usd: optional(float),
});

const jobResult = object({
  id: text,
  started_at: text,
  updated_at: optional(text),
  finished_at: optional(text),
  n_total_trials: int,
  stats: before(withCurrentKeys, stats),
});

/** A job's `result.json`. */
export type JobResult = ReturnType<typeof jobResult.parse>;

/** Reads a `result.json` of any release. Throws `InvalidValue`. */
export function readJobResult(source: string): JobResult {
  return jobResult.parse(JSON.parse(source), "");
}

export function writeJobResult(result: JobResult): string {
  const floats = (values: Readonly<Record<string, number>>): Record<string, Float> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, new Float(value)]));
  const evals = Object.entries(result.stats.evals).map(([key, one]) => [
    key,
    { ...one, metrics: one.metrics.map(floats), pass_at_k: floats(one.pass_at_k) },
  ]);
  return writeJson({ ...result, stats: { ...result.stats, evals: Object.fromEntries(evals) } });
}

export interface JobProgress {
  readonly id: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly finishedAt: string | null;
  readonly totalTrials: number;
  readonly runningTrials: number;
  readonly cancelledTrials: number;
  readonly retries: number;
}

/** The result of a job from the results of its finished trials. */
export function jobResultOf(
  trials: readonly TrialResult[],
  progress: JobProgress,
  metrics: readonly MetricType[] = ["mean"],
  /** Metrics that were computed elsewhere. */
  computed: readonly Readonly<Record<string, number>>[] = [],
): JobResult {
  const groups = Map.groupBy(trials, (trial) => evalKey(trial.agent_info.name, modelOf(trial), trial.source));
  const tokens = trials.map(trialTokens);
  const sum = (key: "n_input_tokens" | "n_cache_tokens" | "n_output_tokens" | "cost_usd"): number | null => {
    const values = tokens.flatMap((one) => one[key] ?? []);
    return values.length === 0 ? null : values.reduce((total, value) => total + value, 0);
  };
  return {
    id: progress.id,
    started_at: progress.startedAt,
    updated_at: progress.updatedAt,
    finished_at: progress.finishedAt,
    n_total_trials: progress.totalTrials,
    stats: {
      n_completed_trials: trials.length,
      n_errored_trials: trials.filter(({ exception_info }) => exception_info !== null).length,
      n_running_trials: progress.runningTrials,
      n_pending_trials: Math.max(0, progress.totalTrials - trials.length - progress.runningTrials),
      n_cancelled_trials: progress.cancelledTrials,
      n_retries: progress.retries,
      evals: Object.fromEntries([...groups].map(([key, group]) => [key, evalStatsOf(group, metrics, computed)])),
      n_input_tokens: sum("n_input_tokens"),
      n_cache_tokens: sum("n_cache_tokens"),
      n_output_tokens: sum("n_output_tokens"),
      cost_usd: sum("cost_usd"),
    },
  };
}

function evalStatsOf(
  trials: readonly TrialResult[],
  metrics: readonly MetricType[],
  computed: readonly Readonly<Record<string, number>>[],
): EvalStats {
  const rewards = trials.map(({ verifier_result }) => verifier_result?.rewards ?? null);
  const failed = trials.flatMap(({ trial_name, exception_info }) =>
    exception_info === null ? [] : [{ trial_name, type: exception_info.exception_type }],
  );
  return {
    n_trials: rewards.filter((map) => map !== null).length,
    n_errors: failed.length,
    metrics: [...metrics.map((type) => metric(type, rewards)), ...computed],
    pass_at_k: passAtKs(trials.map((trial, i) => ({ task: trial.task_name, rewards: rewards[i] ?? null }))),
    reward_stats: rewardStats(trials),
    exception_stats: namesBy(failed, ({ type }) => type),
  };
}

/** The trials by reward key and value. */
function rewardStats(trials: readonly TrialResult[]): EvalStats["reward_stats"] {
  const values = trials.flatMap(({ trial_name, verifier_result }) =>
    Object.entries(verifier_result?.rewards ?? {}).map(([key, value]) => ({
      trial_name,
      key,
      shown: verifier_result?.integers.includes(key) ? String(value) : floatRepr(value),
    })),
  );
  const byKey = Map.groupBy(values, ({ key }) => key);
  return Object.fromEntries([...byKey].map(([key, group]) => [key, namesBy(group, ({ shown }) => shown)]));
}

function namesBy<T extends { readonly trial_name: string }>(all: readonly T[], keyOf: (one: T) => string): Record<string, string[]> {
  const groups = Map.groupBy(all, keyOf);
  return Object.fromEntries([...groups].map(([key, group]) => [key, group.map(({ trial_name }) => trial_name)]));
}

function modelOf({ agent_info: { model_info } }: TrialResult): string | null {
  return model_info === null ? null : model_info.name;
}

/** Old files say `n_trials` and `n_errors`. */
function withCurrentKeys(value: unknown): unknown {
  if (!isTable(value)) return value;
  const { n_trials, n_errors, ...rest } = value;
  return {
    ...(n_trials !== undefined && { n_completed_trials: n_trials }),
    ...(n_errors !== undefined && { n_errored_trials: n_errors }),
    ...rest,
  };
}
