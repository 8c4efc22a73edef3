/** Multipliers of a run. A specific one replaces the general one. */
export interface TimeoutMultipliers {
  readonly timeout_multiplier: number;
  readonly agent_timeout_multiplier: number | null;
  readonly verifier_timeout_multiplier: number | null;
  readonly agent_setup_timeout_multiplier: number | null;
  readonly environment_build_timeout_multiplier: number | null;
}

export const NO_MULTIPLIERS: TimeoutMultipliers = {
  timeout_multiplier: 1,
  agent_timeout_multiplier: null,
  verifier_timeout_multiplier: null,
  agent_setup_timeout_multiplier: null,
  environment_build_timeout_multiplier: null,
};

export interface TimeoutLimits {
  /** Timeout that the run sets in place of the task's; 0 means none. */
  readonly override: number | null;
  readonly base: number | null;
  /** A cap, which is applied before the multiplier. */
  readonly max: number | null;
}

/** The limit of a phase in seconds; null is no limit. */
export function effectiveTimeout({ override, base, max }: TimeoutLimits, specific: number | null, general: number): number | null {
  const chosen = override || base;
  if (chosen === null) return null;
  return Math.min(chosen, max ?? Number.POSITIVE_INFINITY) * (specific ?? general);
}
