import type { CommandEnding } from "@aenv/contract";

/** How a command ended, as clients get it. */
export function endingFields({ exitCode, signal, timedOut, outOfMemory, interruption, durationMs, droppedBytes }: CommandEnding) {
  return {
    exit_code: exitCode,
    signal,
    timed_out: timedOut,
    out_of_memory: outOfMemory,
    interruption,
    duration_ms: durationMs,
    dropped_bytes: droppedBytes,
  };
}
