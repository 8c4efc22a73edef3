import { isPlatformError, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion } from "../hub/hub.ts";

/** The current step of a start, for its timeout error. */
export interface Progress {
  step: string;
  /** Why it waits for the server; null while it does not. */
  waitsFor: string | null;
}

/** Limits how long the starts of instances take, and says of one that runs out of time what it was waiting for. */
export class StartDeadlines {
  readonly #timeoutMs: number;
  /** Starts in progress, by instance. */
  readonly #starts = new Map<string, Progress>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  async run<T>(
    instanceId: string,
    { name, version }: Pick<EnvironmentVersion, "name" | "version">,
    signal: AbortSignal,
    start: (signal: AbortSignal, progress: Progress) => Promise<T>,
  ): Promise<T> {
    const deadline = AbortSignal.timeout(this.#timeoutMs);
    const progress: Progress = { step: "its process has not loaded its code yet", waitsFor: null };
    this.#starts.set(instanceId, progress);
    try {
      return await start(AbortSignal.any([signal, deadline]), progress);
    } catch (cause) {
      // A start that instances share has the deadline of the first of them.
      if (signal.aborted || (!deadline.aborted && !isOutOfTime(cause))) throw cause;
      const step = progress.waitsFor ?? waitedFor(cause) ?? progress.step;
      const message = `${name}@${version} did not start within ${this.#timeoutMs / 1_000} s (the server's startTimeout): ${step}`;
      if (progress.waitsFor === null) throw new PlatformError("instance.start_timeout", message, { cause });
      throw new PlatformError("sandbox.no_capacity", message, { cause, details: { retryAfterSeconds: 5 } });
    } finally {
      this.#starts.delete(instanceId);
    }
  }

  noteWait(instanceId: string, why: string | null): void {
    const progress = this.#starts.get(instanceId);
    if (progress !== undefined) progress.waitsFor = why;
  }
}

function isOutOfTime(cause: unknown): boolean {
  return isPlatformError(cause, "request.cancelled") || (cause instanceof DOMException && cause.name === "TimeoutError");
}

/** What the engine was waiting for when a start ran out of time; null if it does not say. */
function waitedFor(cause: unknown): string | null {
  const step = isPlatformError(cause, "request.cancelled") ? cause.details.waitedFor : undefined;
  return typeof step === "string" ? step : null;
}
