import { isObject } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

/** How a command ended. */
export interface CommandEnding {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** It was ended because its time was over. */
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
  /** Output that is missing, because it was more than the limit. */
  readonly droppedBytes: number;
}

export interface CommandResult extends CommandEnding {
  readonly stdout: string;
  readonly stderr: string;
}

export function readEnding(value: unknown): CommandEnding {
  if (!isObject(value) || typeof value.duration_ms !== "number")
    throw new ValidationError("the server's answer does not say how the command ended");
  return {
    exitCode: typeof value.exit_code === "number" ? value.exit_code : null,
    signal: typeof value.signal === "string" ? value.signal : null,
    timedOut: value.timed_out === true,
    outOfMemory: value.out_of_memory === true,
    durationMs: value.duration_ms,
    droppedBytes: Number(value.dropped_bytes ?? 0),
  };
}
