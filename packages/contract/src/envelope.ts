import * as z from "zod";
import type { PlatformError } from "./errors.ts";

/** The response of the control API and the hub. `error` is an addition to the original, present only in failures. */
export const controlEnvelope = z.looseObject({
  success: z.boolean().default(true),
  code: z.number().nullish(),
  message: z.string().nullish(),
  data: z.unknown(),
  error: z.looseObject({ code: z.string(), retryable: z.boolean().optional(), requestId: z.string().optional() }).nullish().catch(null),
});
export type ControlEnvelope = z.infer<typeof controlEnvelope>;

/** The response of a sandbox on its trainer API. `errorInfo` is an addition to the original's text. */
export const sandboxEnvelope = z.looseObject({
  success: z.boolean(),
  data: z.unknown().optional(),
  error: z.string().nullish(),
  errorInfo: z.looseObject({ code: z.string(), retryable: z.boolean().optional() }).nullish().catch(null),
});
export type SandboxEnvelope = z.infer<typeof sandboxEnvelope>;

export function sandboxFailure(error: PlatformError): SandboxEnvelope {
  return { success: false, error: error.message, errorInfo: { code: error.code, retryable: error.retryable } };
}
