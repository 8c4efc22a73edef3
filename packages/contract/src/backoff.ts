export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

const SLOW: Backoff = { firstMs: 2_000, longestMs: 10 * 60_000 };

/** The delay after so many failures in a row: doubled with each, up to the longest, ten minutes by default. */
export function pauseAfter(failures: number, { firstMs, longestMs }: Backoff = SLOW): number {
  return failures === 0 ? 0 : Math.min(longestMs, firstMs * 2 ** (failures - 1));
}
