import { exceptionType } from "../trial/failure.ts";
import type { Interval, StepReport, TrialReport } from "../trial/report.ts";
import type { VerifierMode } from "../verifier/mode.ts";
import type { ExceptionInfo, StepResult, Timing, TrialResult } from "./trial-result.ts";

/** What identifies a trial in its result. */
export interface TrialIdentity {
  readonly id: string;
  readonly taskName: string;
  readonly trialName: string;
  readonly trialUri: string;
  readonly taskId: Readonly<Record<string, unknown>>;
  /** The dataset's name; null for a single task. */
  readonly source: string | null;
  readonly taskChecksum: string;
  /** Null for a task with steps. */
  readonly verifierMode: VerifierMode | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly startedAt: number;
  readonly finishedAt: number;
}

export interface AgentIdentity {
  readonly name: string;
  readonly version: string;
  /** `provider/model`; null without one. */
  readonly model: string | null;
}

/** The `result.json` of a trial that ran here. */
export function trialResultOf(identity: TrialIdentity, agent: AgentIdentity, report: TrialReport): TrialResult {
  const hasSteps = report.steps.some(({ name }) => name !== null);
  const [only] = report.steps;
  return {
    id: identity.id,
    task_name: identity.taskName,
    trial_name: identity.trialName,
    trial_uri: identity.trialUri,
    task_id: identity.taskId,
    source: identity.source,
    task_checksum: identity.taskChecksum,
    config: identity.config,
    agent_info: { name: agent.name, version: agent.version, model_info: modelInfo(agent.model) },
    agent_result: null,
    verifier_result: report.rewards === null ? null : { rewards: report.rewards, integers: report.integers },
    verifier_environment_mode: identity.verifierMode,
    exception_info: exceptionInfo(report.failure, identity.finishedAt),
    started_at: utc(identity.startedAt),
    finished_at: utc(identity.finishedAt),
    environment_setup: timing(report.environmentSetup),
    agent_setup: null,
    agent_execution: hasSteps ? null : timing(only?.agentExecution ?? null),
    verifier: hasSteps ? null : timing(only?.verifierExecution ?? null),
    step_results: hasSteps ? report.steps.map((step) => stepResult(step, identity.finishedAt)) : null,
  };
}

function stepResult(step: StepReport, finishedAt: number): StepResult {
  const { verification } = step;
  return {
    step_name: step.name ?? "",
    agent_result: null,
    verifier_result: verification === null ? null : { rewards: verification.rewards, integers: verification.integers },
    exception_info: exceptionInfo(step.failure, finishedAt),
    agent_execution: timing(step.agentExecution),
    verifier: timing(step.verifierExecution),
  };
}

function modelInfo(model: string | null): { readonly name: string; readonly provider: string | null } | null {
  if (model === null) return null;
  const at = model.indexOf("/");
  return at < 0 ? { name: model, provider: null } : { name: model.slice(at + 1), provider: model.slice(0, at) };
}

function exceptionInfo(failure: Error | null, occurredAt: number): ExceptionInfo | null {
  if (failure === null) return null;
  return {
    exception_type: exceptionType(failure),
    exception_message: failure.message,
    exception_traceback: failure.stack ?? failure.message,
    occurred_at: utc(occurredAt),
  };
}

function timing(interval: Interval | null): Timing | null {
  return interval === null ? null : { started_at: utc(interval.startedAt), finished_at: utc(interval.finishedAt) };
}

function utc(ms: number): string {
  return new Date(ms).toISOString();
}
