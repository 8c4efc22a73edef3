import { PlatformError } from "@aenv/contract";
import type { Log } from "../definition/definition.ts";

/** What the agent or trainer API passes along with a call. */
export interface CallHooks {
  /** Aborted by the API when its client cancels, and by the instance at a timeout or when the server stops. */
  readonly controller: AbortController;
  readonly log: Log;
  readonly progress: (done: number, total?: number, message?: string) => void;
  /** The role whose agent calls; absent without roles. */
  readonly role?: string | null;
  /** The arguments as the JSON text that the client sent, if the API kept it. */
  readonly inputText?: () => string;
}

const silent = () => {};

/** Hooks that ignore logs and progress. */
export function quietHooks(controller: AbortController = new AbortController()): CallHooks {
  return { controller, log: silent, progress: silent };
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/**
 * Waits for running code until the signal fires: code that ignores the signal cannot block the caller.
 * A later result is passed to `onLate`, so that it can be closed; a later error is dropped.
 */
export function untilAborted<T>(running: PromiseLike<T>, signal: AbortSignal, onLate?: (value: T) => void): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let hasAborted = false;
    const onAbort = () => {
      hasAborted = true;
      reject(signal.reason);
    };
    const done = () => signal.removeEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    running.then(
      (value) => {
        done();
        if (hasAborted) onLate?.(value);
        else resolve(value);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
}

/** Aborts with this error after the timeout. Call the returned function when the work is done. */
export function startTimer(controller: AbortController, timeoutMs: number | undefined, error: () => Error): () => void {
  if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return silent;
  const timer = setTimeout(() => controller.abort(error()), timeoutMs);
  return () => clearTimeout(timer);
}

/** Aborts when the other signal does. Call the returned function when the work is done. */
export function forwardAbort(controller: AbortController, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return silent;
  const onAbort = () => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return () => signal.removeEventListener("abort", onAbort);
}

export function toolTimeout(what: string, timeoutMs: number | undefined): PlatformError {
  return new PlatformError("tool.timeout", `${what} timed out after ${timeoutMs} ms`);
}
