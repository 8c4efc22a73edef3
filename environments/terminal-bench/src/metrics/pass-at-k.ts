/** The k that are reported for m trials: powers of two, and multiples of five. */
export function eligibleKs(m: number): number[] {
  const ks = new Set<number>();
  for (let k = 2; k <= m; k *= 2) ks.add(k);
  for (let k = 5; k <= m; k += 5) ks.add(k);
  return [...ks].sort((a, b) => a - b);
}

/** The probability that one of k trials succeeds, from c successes in n trials. */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let failing = 1;
  for (let i = 0; i < k; i++) failing *= (n - c - i) / (n - i);
  return 1 - failing;
}

/** The outcome of a trial for pass@k. */
export interface Attempt {
  readonly task: string;
  readonly rewards: Readonly<Record<string, number>> | null;
}

/** pass@k of an evaluation, or nothing: a reward with several keys or between 0 and 1 has no pass@k. */
export function passAtKs(attempts: readonly Attempt[]): Record<string, number> {
  const successes = new Map<string, number[]>();
  for (const { task, rewards } of attempts) {
    const values = rewards === null ? [0] : Object.values(rewards);
    const [value] = values;
    if (values.length !== 1 || (value !== 0 && value !== 1)) return {};
    successes.set(task, [...(successes.get(task) ?? []), value]);
  }
  const tasks = [...successes.values()];
  if (tasks.length === 0) return {};
  const fewest = Math.min(...tasks.map((values) => values.length));
  const mean = (k: number): number =>
    tasks.reduce((sum, values) => sum + passAtK(values.length, values.filter((value) => value === 1).length, k), 0) / tasks.length;
  return Object.fromEntries(eligibleKs(fewest).map((k) => [String(k), mean(k)]));
}
