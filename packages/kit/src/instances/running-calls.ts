import { PlatformError } from "@aenv/contract";
import { isPromise, startTimer, toolTimeout, untilAborted } from "./call.ts";

/** The calls of an author's code that run in one instance. */
export class RunningCalls {
  readonly #controllers = new Set<AbortController>();
  /** When a call began or ended last; 0 before the first. */
  lastActiveAt = 0;

  get count(): number {
    return this.#controllers.size;
  }

  /** Runs author code. The result of synchronous code is returned at once; asynchronous code gets a timeout and can be aborted. */
  run(code: () => unknown, controller: AbortController, timeoutMs: number | undefined, what: string): unknown {
    this.lastActiveAt = Date.now();
    const value = code();
    if (!isPromise(value)) return value;
    this.#controllers.add(controller);
    const stopTimer = startTimer(controller, timeoutMs, () => toolTimeout(what, timeoutMs));
    return untilAborted(value, controller.signal).finally(() => {
      stopTimer();
      this.#controllers.delete(controller);
      this.lastActiveAt = Date.now();
    });
  }

  abort(reason: string): void {
    for (const controller of this.#controllers) controller.abort(new PlatformError("request.cancelled", reason));
  }
}
