import { isPlatformError, messageOf } from "@aenv/contract";
import { type PollOptions, poll } from "../async/polling.ts";
import { EnvironmentError } from "../errors/errors.ts";
import { preview } from "../errors/failure.ts";
import { isRefused } from "../errors/http-errors.ts";
import type { JsonClient } from "../http/json-client.ts";
import { SandboxClient, type SandboxOptions } from "./sandbox-client.ts";

export interface HealthWait extends PollOptions {
  /** How long an address at which nothing listens is tried; as long as all else if absent. */
  readonly refusedLimitMs?: number | undefined;
}

const REQUEST_MS = 3_000;

/** Answers that stay the same however long one waits. */
const FINAL_STATUSES: readonly number[] = [401, 403, 410, 501];

const NEXT_STEPS: Readonly<Record<number, string>> = {
  401: "give a token with the option apiKey; if no token should be needed, see what else listens at this address",
  403: "see whether the token has the role and the address is right",
  501: "nothing of this instance is served there; open it with dataPlane: false and use presignUrl()",
};

/** Asks until the instance says that it is healthy. Stops at once when waiting cannot help. */
export async function waitUntilHealthy(client: JsonClient, to: Omit<SandboxOptions, "timeoutMs">, wait: HealthWait): Promise<void> {
  const { envName, url } = to;
  const { clock, signal, timeoutMs, refusedLimitMs = Number.POSITIVE_INFINITY } = wait;
  const sandbox = new SandboxClient(client, { ...to, timeoutMs: REQUEST_MS });
  const refusedUntil = clock.now() + refusedLimitMs;
  let last = "no answer";
  const ask = async (leftMs: number) => {
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
    last = `its health check says ${preview(JSON.stringify(body))}`;
    return null;
  };
  if (await poll(ask, wait)) return;
  throw new EnvironmentError(`environment '${envName}' at ${url} did not become healthy within ${timeoutMs} ms: ${last}`, {
    code: "instance.start_timeout",
    envName,
  });
}

function isHealthy(body: Readonly<Record<string, unknown>>): boolean {
  const { status } = (body.data ?? {}) as { status?: unknown };
  return Boolean(body.success) && (status === "healthy" || status === "success");
}

/** Waiting longer would not help: the instance is gone, we may not ask, or nothing we send arrives there. */
function isFinal(error: unknown): boolean {
  if (!isPlatformError(error)) return false;
  if (error.code === "instance.not_found" || FINAL_STATUSES.includes(error.status)) return true;
  return error.code === "network.failed" && !error.retryable;
}

/** The same with the address and the next step, where there is one. */
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
