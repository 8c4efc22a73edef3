import { list, map, object } from "../fields/containers.ts";
import { type Field, optional, withDefault } from "../fields/field.ts";
import { anything, float, int, oneOf, text } from "../fields/scalars.ts";
import { Float, integerKeys, writeJson } from "./json.ts";

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
  /** By model. */
  model_usage: optional(map(anything)),
  rollout_details: optional(list(map(anything))),
  metadata: optional(map(anything)),
});

export type Timing = ReturnType<typeof timing.parse>;
export type ExceptionInfo = ReturnType<typeof exceptionInfo.parse>;
export type AgentResult = ReturnType<typeof agentResult.parse>;

export interface VerifierResult {
  readonly rewards: Readonly<Record<string, number>> | null;
  /** Keys whose numbers are whole numbers in the file. */
  readonly integers: readonly string[];
}

const verifierResult: Field<VerifierResult> = object({
  rewards: optional(map(float)),
  integers: withDefault<readonly string[]>({ parse: () => [] }, []),
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
  task_id: map(anything),
  source: optional(text),
  task_checksum: withDefault(text, ""),
  config: withDefault(map(anything), {}),
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
  const result = trialResult.parse(JSON.parse(source), "");
  return {
    ...result,
    verifier_result: withIntegers(result.verifier_result, source, ["verifier_result", "rewards"]),
    step_results:
      result.step_results?.map((step, i) => ({
        ...step,
        verifier_result: withIntegers(step.verifier_result, source, ["step_results", String(i), "verifier_result", "rewards"]),
      })) ?? null,
  };
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

function withIntegers(result: VerifierResult | null, source: string, path: readonly string[]): VerifierResult | null {
  return result === null ? null : { ...result, integers: integerKeys(source, path) };
}

function plainVerifierResult(result: VerifierResult | null): unknown {
  if (result === null || result.rewards === null) return result === null ? null : { rewards: null };
  const integers = new Set(result.integers);
  const rewards = Object.entries(result.rewards).map(([key, value]) => [key, integers.has(key) ? value : new Float(value)]);
  return { rewards: Object.fromEntries(rewards) };
}
