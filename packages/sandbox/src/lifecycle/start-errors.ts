import { PlatformError } from "@aenv/contract";

/** `log`: the last lines that the sandbox printed. */
export function startFailed(id: string, reason: string, log: readonly string[] = [], cause?: unknown): PlatformError {
  return new PlatformError("sandbox.start_failed", `sandbox '${id}' did not start: ${reason}`, { cause, details: { reason, log } });
}

/** `waitedFor`: what the start was waiting for, for a caller that has run out of time. */
export function cancelled(id: string, waitedFor?: string): PlatformError {
  const details = waitedFor === undefined ? {} : { waitedFor };
  return new PlatformError("request.cancelled", `sandbox '${id}' was not created: the request was cancelled`, { details });
}

export function existsAlready(id: string, cause?: unknown): PlatformError {
  return new PlatformError("sandbox.exists", `a sandbox '${id}' exists already; destroy it first, or choose another id`, { cause });
}
