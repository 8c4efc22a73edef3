/** The result of an executed step. */
export interface StepOutcome {
  readonly rewards: Readonly<Record<string, number>> | null;
  /** Whether a verification gave a result, also one without rewards. */
  readonly isVerified: boolean;
  readonly hasException: boolean;
}

export type MinReward = number | Readonly<Record<string, number>> | null;

/** Whether a trial ends after a step. A missing reward is below every threshold. */
export function stopsAfter(outcome: StepOutcome, minReward: MinReward): boolean {
  if (outcome.hasException && !outcome.isVerified) return true;
  if (minReward === null) return false;
  const gates = typeof minReward === "number" ? { reward: minReward } : minReward;
  return Object.entries(gates).some(([key, threshold]) => rewardOf(outcome, key) < threshold);
}

/** The reward of a trial with steps. `mean` counts the steps with a verification; steps that were not reached do not count. */
export function trialRewards(outcomes: readonly StepOutcome[], strategy: "mean" | "final" | null): Readonly<Record<string, number>> | null {
  if (strategy === "final") return outcomes.at(-1)?.rewards ?? null;
  const verified = outcomes.filter(({ isVerified }) => isVerified);
  const keys = new Set(verified.flatMap(({ rewards }) => Object.keys(rewards ?? {})));
  if (keys.size === 0) return null;
  const mean = (key: string): number => verified.reduce((sum, { rewards }) => sum + (rewards?.[key] ?? 0), 0) / verified.length;
  return Object.fromEntries([...keys].map((key) => [key, mean(key)]));
}

function rewardOf({ rewards }: StepOutcome, key: string): number {
  return rewards !== null && Object.hasOwn(rewards, key) ? (rewards[key] ?? Number.NEGATIVE_INFINITY) : Number.NEGATIVE_INFINITY;
}
