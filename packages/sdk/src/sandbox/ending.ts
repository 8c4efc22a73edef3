import { type CommandEnding, commandEndingAnswer } from "@aenv/contract";
import type { z } from "zod";
import { readAnswer } from "../http/read-answer.ts";

export function readEnding(value: unknown): CommandEnding {
  return toEnding(readAnswer(commandEndingAnswer, value, "the server's answer about the end of a command"));
}

export function toEnding(ending: z.infer<typeof commandEndingAnswer>): CommandEnding {
  const { exit_code, signal, timed_out, out_of_memory, interruption, duration_ms, dropped_bytes } = ending;
  return {
    exitCode: exit_code,
    signal,
    timedOut: timed_out,
    outOfMemory: out_of_memory,
    interruption,
    durationMs: duration_ms,
    droppedBytes: dropped_bytes,
  };
}
