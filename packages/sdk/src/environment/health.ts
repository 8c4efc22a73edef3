import { isPlatformError, messageOf } from "@aenv/contract";
import { type PollOptions, poll } from "../async/polling.ts";
import { EnvironmentError } from "../errors/errors.ts";
import { preview } from "../errors/failure.ts";
import { isRefused } from "../errors/http-errors.ts";
import type { JsonClient } from "../http/json-client.ts";
import { SandboxClient, type SandboxOptions } from "./sandbox-client.ts";

export interface HealthWait extends PollOptions {
  /** How long refused connections are retried; as long as any other failure if absent. */
  readonly refusedLimitMs?: number | undefined;
}

const REQUEST_MS = 3_000;

/** Statuses that do not change by waiting. */
const FINAL_STATUSES: readonly number[] = [401, 403, 410, 501];

const NEXT_STEPS: Readonly<Record<number, string>> = {
  401: "pass a token with the option apiKey; if no token should be needed, check that the address is right",
  403: "check that the token has the role and that the address is right",
  501: "this instance has no data plane; open it with dataPlane: false and use presignUrl()",
};

/** Polls the health check until it passes. Throws at once on an error that waiting cannot fix. */
export async function waitUntilHealthy(client: JsonClient, to: Omit<SandboxOptions, "timeoutMs">, wait: HealthWait): Promise<void> {
  const { envName, url } = to;
  const { clock, signal, timeoutMs, refusedLimitMs = Number.POSITIVE_INFINITY } = wait;
  const sandbox = new SandboxClient(client, { ...to, timeoutMs: REQUEST_MS });
  const refusedUntil = clock.now() + refusedLimitMs;
  let last = "no answer";
  const check = async (leftMs: number) => {
    let body: Record<string, unknown>;
    try {
      body = await sandbox.checkHealth({}, { timeoutMs: Math.min(REQUEST_MS, leftMs), ...(signal && { signal }) });
    } catch (error) {
      if (signal?.aborted || isFinal(error)) throw explainFinal(error, url);
      if (isRefused(error) && clock.now() >= refusedUntil) throw error;
      last = messageOf(error);
      return null;
    }
    if (isHealthy(body)) return true;
    last = `its health check answered ${preview(JSON.stringify(body))}`;
    return null;
  };
  if (await poll(check, wait)) return;
  throw new EnvironmentError(`environment '${envName}' at ${url} did not become healthy within ${timeoutMs} ms: ${last}`, {
    code: "instance.start_timeout",
    envName,
  });
}

function isHealthy(body: Readonly<Record<string, unknown>>): boolean {
  const { status } = (body.data ?? {}) as { status?: unknown };
  return Boolean(body.success) && (status === "healthy" || status === "success");
}

/** Waiting does not help: the instance is gone, access is denied, or requests do not reach it. */
function isFinal(error: unknown): boolean {
  if (!isPlatformError(error)) return false;
  if (error.code === "instance.not_found" || FINAL_STATUSES.includes(error.status)) return true;
  return error.code === "network.failed" && !error.retryable;
}

/** Adds the address and the next step to the error's message, if there is a next step. */
function explainFinal(error: unknown, url: string): unknown {
  if (!(error instanceof EnvironmentError)) return error;
  const next = NEXT_STEPS[error.status];
  if (next === undefined) return error;
  const { code, retryable, details, envName } = error;
  return new EnvironmentError(`${error.message} (HTTP ${error.status} from ${url}); ${next}`, {
    code,
    retryable,
    details,
    ...(envName !== undefined && { envName }),
    cause: error,
  });
}
