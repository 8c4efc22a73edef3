/** Below this share of the limit, every worker may accept whatever it gets. */
const FREE_SHARE = 0.8;

/**
 * How many connections each worker may have open, by the numbers that it has now. The limit is that of the whole port. Near it, what is
 * left is divided, so that the workers do not exceed it together however late their numbers are.
 */
export function connectionLimits(open: readonly number[], max: number): number[] {
  const total = open.reduce((sum, one) => sum + one, 0);
  if (total < max * FREE_SHARE) return open.map(() => max);
  // One for each is kept back: a lower limit may reach its worker later than a higher one reaches another.
  const left = Math.max(0, max - total - open.length);
  return open.map((one, index) => one + Math.floor(left / open.length) + (index < left % open.length ? 1 : 0));
}
