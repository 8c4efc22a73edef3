import { NetworkError } from "./errors.ts";
import type { TransportError } from "./http-errors.ts";
import type { RetryRule } from "./retry.ts";

/** What a broken connection means to the caller: what may not arrive twice may have arrived once. */
export function networkError(failed: string, error: TransportError, rule: RetryRule): NetworkError {
  const code = error.isTimeout ? "request.timeout" : "network.failed";
  if (rule !== "once" || !error.wasSent) return new NetworkError(`${failed}: ${error.message}`, { code, cause: error });
  const message = `${failed}: ${error.message}; it may have been done, so it is not sent again`;
  return new NetworkError(message, { code, retryable: false, cause: error });
}
