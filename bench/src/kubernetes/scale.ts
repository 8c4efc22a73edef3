/** How much is measured. */
export interface Scale {
  /** Starts of new pods, each beside one of the baseline. */
  readonly pairs: number;
  readonly rounds: number;
  /** Instances in packed slots, of one round. */
  readonly slots: number;
  readonly batch: number;
  /** Simulated pods. */
  readonly simulated: number;
}

const SIMULATED = 2_000;

/** `AENV_BENCH_PODS` sets the number of simulated pods. */
export function fullScale(variables: Readonly<Record<string, string | undefined>>): Scale {
  const text = variables.AENV_BENCH_PODS || String(SIMULATED);
  const simulated = Number(text);
  if (!Number.isSafeInteger(simulated) || simulated < 4) throw new Error(`AENV_BENCH_PODS is '${text}'; it must be a number from 4`);
  return { pairs: 52, rounds: 8, slots: 50, batch: 50, simulated };
}
