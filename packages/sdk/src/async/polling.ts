import type { Clock } from "./clock.ts";

export interface PollOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly interval: { readonly minMs: number; readonly maxMs: number };
  readonly signal?: AbortSignal | undefined;
}

const GROWTH = 1.5;

/**
 * Calls `query` at growing intervals until it returns something other than null. Returns null after the timeout. `query` receives
 * the time that is left.
 */
export async function poll<T>(query: (leftMs: number) => Promise<T | null>, options: PollOptions): Promise<T | null> {
  const { clock, interval, signal } = options;
  const end = clock.now() + options.timeoutMs;
  for (let waitMs = interval.minMs; ; waitMs = Math.min(interval.maxMs, waitMs * GROWTH)) {
    signal?.throwIfAborted();
    const found = await query(Math.max(1, end - clock.now()));
    if (found !== null) return found;
    if (clock.now() + waitMs > end) return null;
    await clock.sleep(waitMs, signal);
  }
}
