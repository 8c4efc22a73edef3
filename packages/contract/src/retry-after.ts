import { clampDelayMs } from "./bounded-read.ts";
import type { PlatformError } from "./errors.ts";

/** The longest pause that a `Retry-After` header is obeyed for: its sender does not decide how long this side waits. */
const LONGEST_PAUSE_MS = 10 * 60_000;

/** The `Retry-After` header of an error's answer, in seconds; null if waiting does not help. */
export function retryAfterOf({ status, retryable, details }: Pick<PlatformError, "status" | "retryable" | "details">): string | null {
  return retryable || status === 429 || status === 503 ? String(details.retryAfterSeconds ?? 1) : null;
}

/** Milliseconds from now of a `Retry-After` header in either of its forms, seconds or a date; ten minutes at most. */
export function parseRetryAfter(header: string | null, wallNow: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return clampDelayMs(Number(text) * 1_000, LONGEST_PAUSE_MS);
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : clampDelayMs(date - wallNow, LONGEST_PAUSE_MS);
}
