import { type EpisodeStage, type ErrorCode, isPlatformError, messageOf, type Unscored, type UnscoredCause } from "@aenv/contract";

/** The model's endpoint failed: it could not be reached, refused the request, or answered nonsense. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly retryable: boolean;

  constructor(message: string, options: { readonly retryable: boolean; readonly cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryable = options.retryable;
  }
}

/** The agent's own program failed: it threw, exited with an error, or could not be started. */
export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly retryable: boolean;

  constructor(message: string, options: { readonly retryable?: boolean; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryable = options.retryable ?? false;
  }
}

/** The episode took longer than its deadline. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/** Failures of code that the environment's author wrote, and requests that it refuses; all others come from the platform around it. */
const ENVIRONMENT_CODES: ReadonlySet<ErrorCode> = new Set([
  "request.invalid",
  "environment.invalid",
  "environment.not_found",
  "environment.unhealthy",
  "bundle.invalid",
  "instance.setup_failed",
  "instance.unsupported",
  "task.not_found",
  "task.invalid",
  "sandbox.answer_too_large",
  "sandbox.image_unavailable",
  "task.list_failed",
  "tool.list_failed",
  "episode.failed",
  "function.failed",
  "reward.missing",
  "reward.failed",
  "snapshot.unsupported",
  "snapshot.invalid",
]);
const TIMEOUT_CODES: ReadonlySet<ErrorCode> = new Set(["tool.timeout", "request.timeout", "instance.start_timeout"]);

/** The outcome of an episode that a failure ended. `cancel` is the signal of the caller who may cancel it. */
export function unscoredBy(error: unknown, stage: EpisodeStage, cancel: AbortSignal): Unscored {
  const { cause, retryable } = judge(error, stage, cancel);
  return { kind: "unscored", cause, stage, retryable, message: shortened(messageOf(error)) };
}

/** Parts of a message come from models, environments and programs, and each record of an episode holds it. */
const MAX_MESSAGE_CHARACTERS = 4_000;

function shortened(message: string): string {
  return message.length <= MAX_MESSAGE_CHARACTERS ? message : `${message.slice(0, MAX_MESSAGE_CHARACTERS)}...`;
}

function judge(error: unknown, stage: EpisodeStage, cancel: AbortSignal): { cause: UnscoredCause; retryable: boolean } {
  if (error instanceof DeadlineError) return { cause: "timeout", retryable: true };
  if (cancel.aborted) return { cause: "cancelled", retryable: true };
  if (error instanceof ModelError) return { cause: "model", retryable: error.retryable };
  if (error instanceof AgentError) return { cause: "agent", retryable: error.retryable };
  if (!isPlatformError(error)) return stage === "play" ? { cause: "agent", retryable: false } : { cause: "sandbox", retryable: true };
  if (TIMEOUT_CODES.has(error.code)) return { cause: "timeout", retryable: true };
  if (error.code === "model.failed") return { cause: "model", retryable: error.retryable };
  // The caller's token was revoked or has expired: no further attempt can go on for it.
  if (error.code === "access.unauthenticated") return { cause: "cancelled", retryable: false };
  if (ENVIRONMENT_CODES.has(error.code)) return { cause: "environment", retryable: error.retryable };
  // A call that failed on its way may have run; a fresh instance can play the episode all the same.
  return { cause: "sandbox", retryable: true };
}
