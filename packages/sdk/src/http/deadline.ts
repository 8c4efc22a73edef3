import { TransportError } from "../errors/http-errors.ts";

/** setTimeout cannot wait longer; anything beyond is as good as no limit. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A caller's signal and a limit in time as one signal. Close it when the work is done, or its timer stays. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #onAbort = () => this.#controller.abort(this.#parent?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** True when it was the time that ran out, not the caller who gave up. */
  isExpired = false;
  /** True when it is someone else's to close. */
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

  /** Begins the time anew. */
  limit(timeoutMs: number): void {
    clearTimeout(this.#timer);
    if (timeoutMs > LONGEST_TIMER_MS) return;
    this.#timer = setTimeout(() => {
      this.isExpired = true;
      this.#controller.abort(new TransportError(`no answer within ${timeoutMs} ms`, { wasSent: true, isTimeout: true }));
    }, timeoutMs);
  }

  /** Lets work that nobody waits for any more go on a little; whoever does it closes the deadline. */
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
