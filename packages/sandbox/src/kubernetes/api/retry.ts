import { ReadLimitExceeded } from "@aenv/contract";
import { isKubernetesError } from "./error.ts";

export interface RetryQuestion {
  readonly error: unknown;
  /** How often the request was sent. */
  readonly attempts: number;
  /** The request names the state that it expects: a conflict is its answer. */
  readonly hasPrecondition: boolean;
  /** A number between 0 and 1. */
  readonly random: number;
}

const MAX_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const MAX_RETRY_AFTER_MS = 60_000;

/** How long to wait before a request is sent again; null if its error is final. */
export function retryPauseMs({ error, attempts, hasPrecondition, random }: RetryQuestion): number | null {
  if (attempts >= MAX_ATTEMPTS || !isTemporary(error, hasPrecondition)) return null;
  const asked = askedPauseMs(error);
  if (asked !== null) return asked;
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), MAX_PAUSE_MS);
  // Many clients that failed together do not come back together.
  return pause * (0.5 + random / 2);
}

/** The pause that the API server asks for; null if it asks for none. */
export function askedPauseMs(error: unknown): number | null {
  const seconds = isKubernetesError(error) && error.retryAfter !== null ? Number(error.retryAfter) : Number.NaN;
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1_000, MAX_RETRY_AFTER_MS) : null;
}

function isTemporary(error: unknown, hasPrecondition: boolean): boolean {
  // No answer: the server restarts, or the connection was cut. All requests are safe to repeat: created objects have chosen names.
  if (!isKubernetesError(error)) return !(error instanceof ReadLimitExceeded);
  switch (error.status) {
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    case 409:
      // `AlreadyExists` is final. A namespace's quota is counted by compare-and-set, so creations conflict too.
      return error.reason === "Conflict" && !hasPrecondition;
    default:
      return false;
  }
}
