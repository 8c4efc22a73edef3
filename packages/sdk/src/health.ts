import { isPlatformError } from "@aenv/contract";
import { EnvironmentError } from "./errors.ts";

/** Answers that stay the same however long one waits. */
const FINAL_STATUSES: readonly number[] = [401, 403, 410, 501];

const NEXT_STEPS: Readonly<Record<number, string>> = {
  401: "give a token with the option apiKey; if no token should be needed, see what else listens at this address",
  403: "see whether the token has the role and the address is right",
  501: "nothing of this instance is served there; open it with dataPlane: false and use presignUrl()",
};

export function isHealthy(body: Readonly<Record<string, unknown>>): boolean {
  const { status } = (body.data ?? {}) as { status?: unknown };
  return Boolean(body.success) && (status === "healthy" || status === "success");
}

/** Waiting longer would not help: the instance is gone, we may not ask, or nothing we send arrives there. */
export function isFinal(error: unknown): boolean {
  if (!isPlatformError(error)) return false;
  if (error.code === "instance.not_found" || FINAL_STATUSES.includes(error.status)) return true;
  return error.code === "network.failed" && !error.retryable;
}

/** The same with the address and the next step, where there is one. */
export function explainFinal(error: unknown, url: string): unknown {
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
