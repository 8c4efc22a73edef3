import { isPlatformError } from "@aenv/contract";

/** How often one of those that wait tries again, in case that something else than an episode of this run has ended. */
const RECHECK_MS = 2_000;

/** Whether a failure means that the server has no capacity now: for an instance, or for the sandbox of its task. */
export function isNoCapacity(error: unknown): boolean {
  return isPlatformError(error, "sandbox.no_capacity", "quota.exceeded");
}

/**
 * The episodes of a run for which the server has no capacity yet. They wait before they begin, so that the time does not count as theirs:
 * whenever an episode ends, the one that waits longest tries again.
 */
export class Capacity {
  readonly #recheckMs: number;
  readonly #now: () => number;
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #playing = 0;
  #idleSince: number;

  constructor({ recheckMs = RECHECK_MS, now = () => performance.now() } = {}) {
    this.#recheckMs = recheckMs;
    this.#now = now;
    this.#idleSince = now();
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** An episode has what it needs. Disposed when it has given it back. */
  begin(): Disposable {
    this.#playing++;
    return {
      [Symbol.dispose]: () => {
        if (--this.#playing === 0) this.#idleSince = this.#now();
        this.#wake();
      },
    };
  }

  /** Whether no episode of this run has been playing for so long: then nothing of it frees capacity. */
  isIdleFor(ms: number): boolean {
    return this.#playing === 0 && this.#now() - this.#idleSince > ms;
  }

  /** Resolves when the caller should try again, also if it is cancelled. */
  async wait(cancel: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#timer ??= setInterval(() => this.#wake(), this.#recheckMs);
    const stop = () => resolve();
    cancel.addEventListener("abort", stop);
    if (cancel.aborted) stop();
    await promise;
    cancel.removeEventListener("abort", stop);
    const at = this.#waiting.indexOf(resolve);
    if (at >= 0) this.#waiting.splice(at, 1);
    if (this.#waiting.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #wake(): void {
    this.#waiting.shift()?.();
  }
}
