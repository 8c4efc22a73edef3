import { parseBoundedJson } from "@aenv/contract";

/** An error that the API server answered. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  readonly status: number;
  /** One word of the API, such as `AlreadyExists`, `NotFound`, `Conflict`, `Expired` or `Forbidden`. */
  readonly reason: string;
  /** The answer's header `Retry-After`, in seconds; null without one. */
  readonly retryAfter: string | null;

  constructor(status: number, reason: string, message: string, retryAfter: string | null = null) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter;
  }
}

export function isKubernetesError(error: unknown, ...statuses: readonly number[]): error is KubernetesError {
  return error instanceof KubernetesError && (statuses.length === 0 || statuses.includes(error.status));
}

/** The error in the body of an answer: a `Status`, or any text. */
export function errorIn(status: number, text: string, retryAfter: string | null = null): KubernetesError {
  try {
    const { message, reason } = parseBoundedJson(text) as { message?: unknown; reason?: unknown };
    return new KubernetesError(status, String(reason ?? ""), String(message ?? text), retryAfter);
  } catch {
    return new KubernetesError(status, "", text.trim().slice(0, 500) || `HTTP status ${status}`, retryAfter);
  }
}
