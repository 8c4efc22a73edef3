import { isTable, list, map, object } from "../fields/containers.ts";
import { type Field, optional, refine, withDefault } from "../fields/field.ts";
import { anything, float, int, oneOf, text } from "../fields/scalars.ts";
import { readJson } from "../python/json.ts";
import { Float, writeJson } from "./json.ts";

const plain = refine(anything, withNumbers);

const timing = object({ started_at: optional(text), finished_at: optional(text) });

const exceptionInfo = object({
  exception_type: text,
  exception_message: text,
  exception_traceback: withDefault(text, ""),
  occurred_at: optional(text),
});

const agentResult = object({
  n_input_tokens: optional(int),
  n_cache_tokens: optional(int),
  n_output_tokens: optional(int),
  cost_usd: optional(float),
  /** The tokens and costs of each model. */
  model_usage: optional(map(plain)),
  rollout_details: optional(list(map(plain))),
  metadata: optional(map(plain)),
});

export type Timing = ReturnType<typeof timing.parse>;
export type ExceptionInfo = ReturnType<typeof exceptionInfo.parse>;
export type AgentResult = ReturnType<typeof agentResult.parse>;

export interface VerifierResult {
  readonly rewards: Readonly<Record<string, number>> | null;
  /** Keys whose numbers are whole numbers in the file. */
  readonly integers: readonly string[];
}

const reward: Field<number | bigint> = { parse: (value, at) => (typeof value === "bigint" ? value : float.parse(value, at)) };

const verifierResult: Field<VerifierResult> = refine(object({ rewards: optional(map(reward)) }), ({ rewards }) => {
  const entries = Object.entries(rewards ?? {});
  return {
    rewards: rewards && Object.fromEntries(entries.map(([key, value]) => [key, Number(value)])),
    integers: entries.flatMap(([key, value]) => (typeof value === "bigint" ? [key] : [])),
  };
});

const stepResult = object({
  step_name: text,
  agent_result: optional(agentResult),
  verifier_result: optional(verifierResult),
  exception_info: optional(exceptionInfo),
  agent_execution: optional(timing),
  verifier: optional(timing),
});

export type StepResult = ReturnType<typeof stepResult.parse>;

const trialResult = object({
  id: text,
  task_name: text,
  trial_name: text,
  trial_uri: withDefault(text, ""),
  task_id: map(plain),
  source: optional(text),
  task_checksum: withDefault(text, ""),
  config: withDefault(map(plain), {}),
  agent_info: object({
    name: text,
    version: withDefault(text, "unknown"),
    model_info: optional(object({ name: text, provider: optional(text) })),
  }),
  agent_result: optional(agentResult),
  verifier_result: optional(verifierResult),
  /** Null for a task with steps. */
  verifier_environment_mode: optional(oneOf("shared", "separate")),
  exception_info: optional(exceptionInfo),
  started_at: optional(text),
  finished_at: optional(text),
  environment_setup: optional(timing),
  agent_setup: optional(timing),
  agent_execution: optional(timing),
  verifier: optional(timing),
  step_results: optional(list(stepResult)),
});

/** A trial's `result.json`. */
export type TrialResult = ReturnType<typeof trialResult.parse>;

/** Reads a `result.json` of any release; missing keys are null. Throws `InvalidValue`. */
export function readTrialResult(source: string): TrialResult {
  return trialResult.parse(readJson(source), "");
}

export function writeTrialResult(result: TrialResult): string {
  const steps = result.step_results?.map((step) => ({ ...step, verifier_result: plainVerifierResult(step.verifier_result) })) ?? null;
  return writeJson({ ...result, verifier_result: plainVerifierResult(result.verifier_result), step_results: steps });
}

/** The tokens of a trial: of its own result, or the sums over its steps. */
export function trialTokens({
  agent_result,
  step_results,
}: TrialResult): Pick<AgentResult, "n_input_tokens" | "n_cache_tokens" | "n_output_tokens" | "cost_usd"> {
  if (agent_result !== null) return agent_result;
  const results = (step_results ?? []).flatMap((step) => step.agent_result ?? []);
  const sum = (key: "n_input_tokens" | "n_cache_tokens" | "n_output_tokens" | "cost_usd"): number | null => {
    const values = results.flatMap((result) => result[key] ?? []);
    return values.length === 0 ? null : values.reduce((total, value) => total + value, 0);
  };
  return {
    n_input_tokens: sum("n_input_tokens"),
    n_cache_tokens: sum("n_cache_tokens"),
    n_output_tokens: sum("n_output_tokens"),
    cost_usd: sum("cost_usd"),
  };
}

function plainVerifierResult(result: VerifierResult | null): unknown {
  if (result === null || result.rewards === null) return result === null ? null : { rewards: null };
  const integers = new Set(result.integers);
  const rewards = Object.entries(result.rewards).map(([key, value]) => [key, integers.has(key) ? value : new Float(value)]);
  return { rewards: Object.fromEntries(rewards) };
}

/** Whole numbers of JSON as numbers of JavaScript. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  return isTable(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNumbers(one)])) : value;
}
