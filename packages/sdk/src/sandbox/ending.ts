import { type CommandEnding, isObject } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

export function readEnding(value: unknown): CommandEnding {
  if (!isObject(value) || typeof value.duration_ms !== "number")
    throw new ValidationError("the server's answer does not say how the command ended");
  return {
    exitCode: typeof value.exit_code === "number" ? value.exit_code : null,
    signal: typeof value.signal === "string" ? value.signal : null,
    timedOut: value.timed_out === true,
    outOfMemory: value.out_of_memory === true,
    interruption: typeof value.interruption === "string" ? value.interruption : null,
    durationMs: value.duration_ms,
    droppedBytes: Number(value.dropped_bytes ?? 0),
  };
}
