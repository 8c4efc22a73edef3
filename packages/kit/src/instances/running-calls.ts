import { PlatformError } from "@aenv/contract";
import { isPromise, startTimer, toolTimeout, untilAborted } from "./call.ts";

/** The calls of an author's code that run in one instance. */
export class RunningCalls {
  readonly #controllers = new Set<AbortController>();
  /** When a call began or ended last; 0 before the first. */
  lastActiveAt = 0;

  /** Set while the calls are held. */
  #held: Promise<void> | null = null;
  #onIdle: (() => void) | undefined;

  get count(): number {
    return this.#controllers.size;
  }

  /** Runs author code. The result of synchronous code is returned at once; asynchronous code gets a timeout and can be aborted. */
  run(code: () => unknown, controller: AbortController, timeoutMs: number | undefined, what: string): unknown {
    if (this.#held !== null) return this.#held.then(() => this.run(code, controller, timeoutMs, what));
    this.lastActiveAt = Date.now();
    const value = code();
    if (!isPromise(value)) return value;
    this.#controllers.add(controller);
    const stopTimer = startTimer(controller, timeoutMs, () => toolTimeout(what, timeoutMs));
    return untilAborted(value, controller.signal).finally(() => {
      stopTimer();
      this.#controllers.delete(controller);
      this.lastActiveAt = Date.now();
      if (this.count === 0) this.#onIdle?.();
    });
  }

  /** Holds new calls back and resolves when none runs any more. Call the result to let them run; an error if the running ones take too long. */
  async hold(limitMs: number): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = this.count;
    this.#held = promise;
    const release = () => {
      this.#held = null;
      resolve();
    };
    if (running > 0 && !(await this.#untilIdle(limitMs))) {
      release();
      throw new PlatformError(
        "instance.busy",
        `${running} calls of the instance did not end within ${limitMs} ms, so its state was not stored`,
      );
    }
    return release;
  }

  #untilIdle(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isIdle: boolean) => {
        clearTimeout(timer);
        this.#onIdle = undefined;
        resolve(isIdle);
      };
      const timer = setTimeout(() => finish(false), limitMs);
      this.#onIdle = () => finish(true);
    });
  }

  abort(reason: string): void {
    for (const controller of this.#controllers) controller.abort(new PlatformError("request.cancelled", reason));
  }
}
