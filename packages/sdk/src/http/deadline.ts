import { TransportError } from "../errors/http-errors.ts";

/** The maximum of setTimeout; a longer timeout counts as none. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A caller's signal and a timeout as one signal. Close it when the work is done, otherwise its timer keeps running. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #onAbort = () => this.#controller.abort(this.#parent?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** True when the timeout ended it, not the caller's signal. */
  isExpired = false;
  /** True when background work closes it. */
  isDetached = false;

  constructor(timeoutMs: number, parent?: AbortSignal) {
    this.#parent = parent;
    if (parent?.aborted) this.#onAbort();
    else {
      parent?.addEventListener("abort", this.#onAbort, { once: true });
      this.limit(timeoutMs);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Restarts the timeout. */
  limit(timeoutMs: number): void {
    clearTimeout(this.#timer);
    if (timeoutMs > LONGEST_TIMER_MS) return;
    this.#timer = setTimeout(() => {
      this.isExpired = true;
      this.#controller.abort(new TransportError(`no answer within ${timeoutMs} ms`, { wasSent: true, isTimeout: true }));
    }, timeoutMs);
  }

  /** Lets background work continue for a while, independent of the caller's signal. That work must close the deadline. */
  detach(graceMs: number): void {
    this.isDetached = true;
    this.#parent?.removeEventListener("abort", this.#onAbort);
    this.limit(graceMs);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#parent?.removeEventListener("abort", this.#onAbort);
  }
}
