import { toPlatformError } from "../http/exchange.ts";

const INTERNAL_ERROR = -32_603;

/** The JSON-RPC error of a call that failed because of the platform. Clients of the platform read the code in `data`. */
export function faultOf(error: unknown): { readonly code: number; readonly message: string; readonly data: object } {
  const { code, message, retryable } = toPlatformError(error);
  return { code: INTERNAL_ERROR, message, data: { code, retryable } };
}
