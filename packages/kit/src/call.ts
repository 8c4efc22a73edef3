import { messageOf, PlatformError } from "@aenv/contract";
import type { Log } from "./definition.ts";

/** What a door gives to a call that comes through it. */
export interface CallHooks {
  /** Aborted by the door when its client cancels, and by the instance when time is up or the server stops. */
  readonly controller: AbortController;
  readonly log: Log;
  readonly progress: (done: number, total?: number, message?: string) => void;
  /** The arguments as the client wrote them, where the door has seen that. */
  readonly inputText?: () => string;
}

const silent = () => {};

/** Hooks for callers that hear neither logs nor progress. */
export function quietHooks(controller: AbortController = new AbortController()): CallHooks {
  return { controller, log: silent, progress: silent };
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/**
 * Waits for a running call, but not longer than its signal: code that ignores the signal cannot hold the caller.
 * The rest of what it does goes unheard.
 */
export function untilAborted<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    running.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Aborts when the time is up; call what it returns when the call is done. */
export function startTimer(controller: AbortController, timeoutMs: number | undefined, what: string): () => void {
  if (timeoutMs === undefined) return silent;
  const timer = setTimeout(() => controller.abort(new PlatformError("tool.timeout", `${what} timed out after ${timeoutMs} ms`)), timeoutMs);
  return () => clearTimeout(timer);
}

/** The reason of an abort as a sentence. */
export function abortMessage(signal: AbortSignal): string {
  return messageOf(signal.reason);
}
