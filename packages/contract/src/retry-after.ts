import type { PlatformError } from "./errors.ts";

/** The `Retry-After` header of an error's answer, in seconds; null if waiting does not help. */
export function retryAfterOf({ status, retryable, details }: Pick<PlatformError, "status" | "retryable" | "details">): string | null {
  return retryable || status === 429 || status === 503 ? String(details.retryAfterSeconds ?? 1) : null;
}

/** Milliseconds from now of a `Retry-After` header in either of its forms, seconds or a date. */
export function parseRetryAfter(header: string | null, wallNow: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - wallNow);
}
