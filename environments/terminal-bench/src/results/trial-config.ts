import type { TimeoutMultipliers } from "../trial/plan/timeouts.ts";
import { Float } from "./json.ts";

export interface TrialConfigInput {
  readonly task:
    | { readonly path: string; readonly source: string | null }
    | { readonly name: string; readonly ref: string; readonly source: string | null };
  readonly trialName: string;
  readonly trialsFolder: string;
  readonly multipliers: TimeoutMultipliers;
  readonly agent: { readonly name: string; readonly model: string | null; readonly env: Readonly<Record<string, string>> };
  readonly verifier: { readonly isDisabled: boolean; readonly env: Readonly<Record<string, string>> };
  readonly environment: { readonly type: string; readonly env: Readonly<Record<string, string>> };
  readonly artifacts: readonly unknown[];
  readonly jobId: string | null;
}

/** A trial's `config.json` with all its keys. Secrets in environments must have been removed. */
export function trialConfig(input: TrialConfigInput): Record<string, unknown> {
  const { multipliers } = input;
  const factor = (value: number | null): Float | null => (value === null ? null : new Float(value));
  return {
    task: {
      path: null,
      git_url: null,
      git_commit_id: null,
      name: null,
      ref: null,
      overwrite: false,
      download_dir: null,
      ...input.task,
    },
    trial_name: input.trialName,
    trials_dir: input.trialsFolder,
    timeout_multiplier: new Float(multipliers.timeout_multiplier),
    agent_timeout_multiplier: factor(multipliers.agent_timeout_multiplier),
    verifier_timeout_multiplier: factor(multipliers.verifier_timeout_multiplier),
    agent_setup_timeout_multiplier: factor(multipliers.agent_setup_timeout_multiplier),
    environment_build_timeout_multiplier: factor(multipliers.environment_build_timeout_multiplier),
    agent: {
      name: input.agent.name,
      import_path: null,
      model_name: input.agent.model,
      skills: [],
      override_timeout_sec: null,
      override_setup_timeout_sec: null,
      max_timeout_sec: null,
      extra_allowed_hosts: [],
      kwargs: {},
      env: input.agent.env,
      mcp_servers: [],
    },
    environment: {
      type: input.environment.type,
      import_path: null,
      force_build: false,
      delete: true,
      cpu_enforcement_policy: "auto",
      memory_enforcement_policy: "auto",
      override_cpus: null,
      override_memory_mb: null,
      override_storage_mb: null,
      override_gpus: null,
      override_tpu: null,
      mounts: null,
      extra_docker_compose: [],
      env: input.environment.env,
      kwargs: {},
      extra_allowed_hosts: [],
    },
    verifier: {
      override_timeout_sec: null,
      max_timeout_sec: null,
      env: input.verifier.env,
      import_path: null,
      kwargs: {},
      disable: input.verifier.isDisabled,
    },
    artifacts: input.artifacts,
    extra_instruction_paths: [],
    job_id: input.jobId,
  };
}
