import type { StepConfig, TaskConfig } from "../task/config/config.ts";
import type { EnvironmentConfig } from "../task/config/environment.ts";

export type VerifierMode = "shared" | "separate";

/** Whether a verification runs in the agent's environment, or in its own. */
export function verifierMode(task: TaskConfig, step: StepConfig | null): VerifierMode {
  if (step?.verifier.environment_mode != null) return step.verifier.environment_mode;
  if (step?.verifier.environment != null) return "separate";
  if (task.verifier.environment_mode !== null) return task.verifier.environment_mode;
  return task.verifier.environment === null ? "shared" : "separate";
}

/** The environment of a separate verifier, and whether it is a copy of the agent's. */
export function verifierEnvironment(
  task: TaskConfig,
  step: StepConfig | null,
): { readonly config: EnvironmentConfig; readonly isCopy: boolean } {
  const own = step?.verifier.environment ?? task.verifier.environment;
  return own === null ? { config: structuredClone(task.environment), isCopy: true } : { config: own, isCopy: false };
}
