import { formatDuration } from "@aenv/contract";
import { Option } from "commander";
import { duration } from "../options/values.ts";
import { Failure } from "../terminal/failure.ts";
import { UNSETTLED_AWAIT } from "./load-exit-code.ts";

/** The code of a failure to finish loading; `locateErrors` then looks for the top-level await. */
export const LOAD_UNFINISHED = "environment.unfinished";

export const LOAD_TIMEOUT_MS = 60_000;

/** `--load-timeout`, for every command that loads a project's code. */
export function loadTimeoutOption(): Option {
  return new Option("--load-timeout <duration>", "timeout for loading the environment's code")
    .argParser(duration)
    .default(LOAD_TIMEOUT_MS, formatDuration(LOAD_TIMEOUT_MS));
}

export function loadTimedOut(timeoutMs: number): Failure {
  return new Failure(`the environment's code has not finished loading after ${formatDuration(timeoutMs)}`, {
    code: LOAD_UNFINISHED,
    hint: "Move slow work into setup, or raise the limit with --load-timeout 5m.",
  });
}

/** Why a process ended before its environment was loaded. */
export function endedWhileLoading(code: number | null, signal: NodeJS.Signals | null): Failure {
  if (code === UNSETTLED_AWAIT) {
    return new Failure("a top-level await of the environment's code never settles", {
      code: LOAD_UNFINISHED,
      hint: "Await a promise that settles, or move the work into setup.",
    });
  }
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return new Failure(`the environment's process ended while its code was loaded (${how})`, {
    code: "environment.invalid",
    hint: "The code must not end the process while it is loaded; look for process.exit.",
  });
}
