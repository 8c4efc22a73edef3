import { NetworkError } from "./errors.ts";
import type { TransportError } from "./http-errors.ts";
import type { RetryRule } from "./retry.ts";

/** The error for a failed connection. A request that must not be repeated may have been processed, so it is not retryable. */
export function networkError(failed: string, error: TransportError, rule: RetryRule): NetworkError {
  const code = error.isTimeout ? "request.timeout" : "network.failed";
  if (rule !== "once" || !error.wasSent) return new NetworkError(`${failed}: ${error.message}`, { code, cause: error });
  const message = `${failed}: ${error.message}; it may have been processed, so it is not sent again`;
  return new NetworkError(message, { code, retryable: false, cause: error });
}
