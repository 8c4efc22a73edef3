import { redacted } from "../templates/secrets.ts";
import type { VerifierMode } from "../verifier/mode.ts";

export interface LockInput {
  readonly createdAt: string;
  /** The command; null if it is not known. */
  readonly invocation: readonly string[] | null;
  readonly concurrency: number;
  readonly trials: readonly LockedTrial[];
}

export interface LockedTrial {
  readonly name: string;
  /** The version of the task's package. */
  readonly version: string | null;
  /** `sha256:` and the content hash of the task. */
  readonly digest: string;
  readonly source: string | null;
  readonly path: string;
  /** Its `config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Null for a task with steps. */
  readonly verifierMode: VerifierMode | null;
}

const RETRY = {
  max_retries: 0,
  exclude_exceptions: [
    "AgentTimeoutError",
    "RewardFileEmptyError",
    "RewardFileNotFoundError",
    "VerifierOutputParseError",
    "VerifierTimeoutError",
  ],
  wait_multiplier: 1,
  min_wait_sec: 1,
  max_wait_sec: 60,
};

/** A job's `lock.json`: what exactly was run. Keys without a value are left out. */
export function jobLock({ createdAt, invocation, concurrency, trials }: LockInput): unknown {
  return withoutNulls({
    schema_version: 3,
    created_at: createdAt,
    harbor: {},
    invocation: invocation && redactedInvocation(invocation),
    n_concurrent_trials: concurrency,
    retry: RETRY,
    trials: trials.map(trialLock),
  });
}

function trialLock({ name, version, digest, source, path, config, verifierMode }: LockedTrial): Record<string, unknown> {
  const multipliers = Object.entries(config).filter(([key]) => key.endsWith("timeout_multiplier"));
  return {
    schema_version: 2,
    task: { name, version, type: "local", digest, source, path },
    ...Object.fromEntries(multipliers),
    agent: config.agent,
    skills: [],
    environment: config.environment,
    verifier: { ...(config.verifier as object), environment_mode: verifierMode },
  };
}

/** Options whose value is `NAME=secret`. */
const ENVIRONMENT_OPTIONS = ["--ae", "--ve", "--agent-env", "--verifier-env"];

export function redactedInvocation(words: readonly string[]): string[] {
  const hide = (pair: string) => pair.replace(/^([^=]*=)(.*)$/s, (_, name: string, value: string) => name + redacted(value));
  return words.map((word, i) => {
    if (ENVIRONMENT_OPTIONS.includes(words[i - 1] ?? "")) return hide(word);
    const option = ENVIRONMENT_OPTIONS.find((one) => word.startsWith(`${one}=`));
    return option === undefined ? word : `${option}=${hide(word.slice(option.length + 1))}`;
  });
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  // Floats are objects too, which are written as they are.
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== null && one !== undefined)
      .map(([key, one]) => [key, withoutNulls(one)]),
  );
}
