/** The milliseconds between two times of a clock, to the microsecond: further digits say nothing, and every step would store them. */
export function elapsedMs(from: number, to: number): number {
  return Math.round((to - from) * 1_000) / 1_000;
}
