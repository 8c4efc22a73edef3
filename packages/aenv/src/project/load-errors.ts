import { formatDuration } from "@aenv/contract";
import { Option } from "commander";
import { duration } from "../options/values.ts";
import { Failure } from "../terminal/failure.ts";
import { UNSETTLED_AWAIT } from "./load-exit-code.ts";

/** The code of a failure to finish loading; `diagnose` then looks for the line that waits. */
export const LOAD_UNFINISHED = "environment.unfinished";

export const LOAD_TIMEOUT_MS = 60_000;

/** `--load-timeout`, for every command that loads a project's code. */
export function loadTimeoutOption(): Option {
  return new Option("--load-timeout <duration>", "how long the environment's code may take to load")
    .argParser(duration)
    .default(LOAD_TIMEOUT_MS, formatDuration(LOAD_TIMEOUT_MS));
}

export function loadTimedOut(timeoutMs: number): Failure {
  return new Failure(`the environment's code has not finished loading after ${formatDuration(timeoutMs)}`, {
    code: LOAD_UNFINISHED,
    hint: "Move slow work into setup, or give loading longer with --load-timeout 5m.",
  });
}

/** Why a process ended before its environment was loaded. */
export function endedWhileLoading(code: number | null, signal: NodeJS.Signals | null): Failure {
  if (code === UNSETTLED_AWAIT) {
    return new Failure("a top-level await of the environment's code waits for something that never happens", {
      code: LOAD_UNFINISHED,
      hint: "Await something that settles, or move the work into setup.",
    });
  }
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return new Failure(`the environment's process ended while it was loaded (${how})`, {
    code: "environment.invalid",
    hint: "Its code must not end the process while it is loaded; look for process.exit.",
  });
}
