import { cancelled } from "./start-errors.ts";

export interface StartLimits {
  readonly id: string;
  /** Cancels the start. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The error of a start that has taken too long. */
  readonly timedOut: () => unknown;
  /** What the start waits for now, for a caller that cancels it. */
  readonly waitsFor?: () => string;
}

/**
 * Runs the steps of a start with a signal, which fires when the time is over, when the start is cancelled, and when `fail` is called, as for a
 * sandbox that has ended. The start then rejects with the error of the first of them. After it, `fail` does nothing.
 */
export async function startWithin<T>(
  { id, signal, timeoutMs, timedOut, waitsFor }: StartLimits,
  steps: (signal: AbortSignal, fail: (error: () => unknown) => void) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const cancel = () => stop.abort(cancelled(id, waitsFor?.()));
  const timer = setTimeout(async () => stop.abort(await timedOut()), timeoutMs);
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  try {
    return await steps(stop.signal, (error) => stop.signal.aborted || stop.abort(error()));
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    stop.abort();
  }
}
