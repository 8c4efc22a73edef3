import { isErrorCode, isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { SentError } from "./messages.ts";

export function sendableError(error: unknown): SentError {
  const systemCode = systemCodeOf(error) ?? systemCodeOf((error as Error | undefined)?.cause);
  return {
    code: isPlatformError(error) ? error.code : null,
    message: messageOf(error),
    ...(systemCode !== undefined && { systemCode }),
  };
}

export function receivedError({ code, message, systemCode }: SentError): Error {
  const cause = systemCode === undefined ? undefined : Object.assign(new Error(message), { code: systemCode });
  return isErrorCode(code) ? new PlatformError(code, message, { cause }) : new Error(message, { cause });
}

function systemCodeOf(error: unknown): string | undefined {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === "string" && /^E[A-Z]+$/.test(code) ? code : undefined;
}
