import type { ArtifactConfig } from "../../task/config/artifact.ts";
import type { HealthcheckConfig } from "../../task/config/healthcheck.ts";
import { type CollectHook, DEFAULT_VERIFIER_TIMEOUT_SEC } from "../../task/config/phases.ts";
import type { IsIgnored } from "../../task/ignore.ts";
import type { Solution, Task, TaskStep, VerifierEnvironment } from "../../task/model.ts";
import type { ParserName } from "../../tb1/parsers.ts";
import { type PlannedArtifact, planArtifacts } from "./artifacts.ts";
import { type NetworkPlan, networkPlan, type RunHosts } from "./network.ts";
import type { MinReward } from "./stop.ts";
import { effectiveTimeout, NO_MULTIPLIERS, type TimeoutMultipliers } from "./timeouts.ts";

export type User = string | number | null;

/** What a run adds to its tasks, or replaces. */
export interface RunSettings {
  readonly multipliers?: TimeoutMultipliers;
  readonly agentTimeoutSec?: number | null;
  readonly maxAgentTimeoutSec?: number | null;
  readonly verifierTimeoutSec?: number | null;
  readonly maxVerifierTimeoutSec?: number | null;
  readonly artifacts?: readonly (string | ArtifactConfig)[];
  readonly hosts?: RunHosts;
  readonly environmentEnv?: Readonly<Record<string, string>>;
  readonly verifierEnv?: Readonly<Record<string, string>>;
}

/** One pass of agent and verifier: a task without steps has one, a task with steps one for each. */
export interface StepPlan {
  /** Null for a task without steps. */
  readonly name: string | null;
  readonly instruction: string;
  readonly network: NetworkPlan;
  readonly agent: { readonly user: User; readonly timeoutSec: number | null };
  readonly solution: Solution | null;
  readonly workdirFolder: string | null;
  readonly hasSetup: boolean;
  readonly healthcheck: HealthcheckConfig | null;
  readonly artifacts: readonly PlannedArtifact[];
  readonly collect: readonly CollectHook[];
  readonly verifier: VerifierPlan;
  readonly minReward: MinReward;
}

export interface VerifierPlan {
  readonly user: User;
  readonly timeoutSec: number;
  /** With templates. */
  readonly env: Readonly<Record<string, string>>;
  /** Folders whose contents go to `/tests`, later ones over earlier ones, and a script beside them. */
  readonly testFolders: readonly string[];
  readonly extraScript: string | null;
  readonly command: string;
  /** How the output becomes a reward; null if the script writes reward files. */
  readonly parser: ParserName | null;
  /** Files of these folders that are not copied. */
  readonly isIgnored: IsIgnored;
  /** Null unless the verifier is a separate one. */
  readonly environment: VerifierEnvironment | null;
}

/** The passes of a task, with everything that steps inherit. */
export function planTask(task: Task, run: RunSettings = {}): StepPlan[] {
  return task.steps.length === 0 ? [planStep(task, null, run)] : task.steps.map((step) => planStep(task, step, run));
}

function planStep(task: Task, step: TaskStep | null, run: RunSettings): StepPlan {
  const { config } = task;
  const own = step?.config ?? null;
  const multipliers = run.multipliers ?? NO_MULTIPLIERS;
  const agentTimeout = {
    override: run.agentTimeoutSec ?? null,
    base: own?.agent.timeout_sec ?? config.agent.timeout_sec,
    max: run.maxAgentTimeoutSec ?? null,
  };
  return {
    name: own?.name ?? null,
    instruction: step?.instruction ?? task.instruction,
    network: networkPlan(config, own, run.hosts),
    agent: {
      user: own?.agent.user ?? config.agent.user,
      timeoutSec: effectiveTimeout(agentTimeout, multipliers.agent_timeout_multiplier, multipliers.timeout_multiplier),
    },
    solution: step?.solution ?? task.solution,
    workdirFolder: step?.workdirFolder ?? null,
    hasSetup: step?.hasSetup ?? false,
    healthcheck: own?.healthcheck ?? null,
    artifacts: planArtifacts(config.artifacts, run.artifacts ?? [], own?.artifacts ?? []),
    collect: [...config.verifier.collect, ...(own?.verifier.collect ?? [])],
    verifier: planVerifier(task, step, run, multipliers),
    minReward: own?.min_reward ?? null,
  };
}

function planVerifier(task: Task, step: TaskStep | null, run: RunSettings, multipliers: TimeoutMultipliers): VerifierPlan {
  const { config, tests, parser } = task;
  const own = step?.config ?? null;
  const limits = {
    override: run.verifierTimeoutSec ?? null,
    // A step without its own limit inherits the task's; the reference takes 600 seconds.
    base: own?.verifier.timeout_sec ?? config.verifier.timeout_sec ?? DEFAULT_VERIFIER_TIMEOUT_SEC,
    max: run.maxVerifierTimeoutSec ?? null,
  };
  return {
    user: own?.verifier.user ?? config.verifier.user,
    timeoutSec: effectiveTimeout(limits, multipliers.verifier_timeout_multiplier, multipliers.timeout_multiplier) ?? limits.base,
    env: { ...config.verifier.env, ...own?.verifier.env, ...run.verifierEnv },
    testFolders: [tests?.folder, step?.testsFolder].filter((folder) => folder != null),
    extraScript: parser === null ? null : (tests?.script ?? null),
    command: parser === null ? "(/tests/test.sh) > /logs/verifier/test-stdout.txt 2>&1" : "bash /tests/run-tests.sh",
    parser,
    isIgnored: task.isIgnored,
    environment: (step ?? task).verifierEnvironment,
  };
}
