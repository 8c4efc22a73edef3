import { setTimeout as pause } from "node:timers/promises";

export interface MemoryGateOptions {
  /** Starts wait while the machine has less available memory than this; 0: never. */
  readonly minBytes: number;
  readonly availableBytes: () => number;
  /** Interval of the checks while starts wait. */
  readonly pollMs: number;
}

/** Lets starts wait while the machine is short of memory. They continue in order, one for each check, so that each one's use is seen. */
export class MemoryGate {
  readonly #options: MemoryGateOptions;
  readonly #waiting: (() => void)[] = [];
  #isChecking = false;

  constructor(options: MemoryGateOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isOpen(): boolean {
    return this.#waiting.length === 0 && this.hasMemory;
  }

  /** Also true while starts wait for their turn. */
  get hasMemory(): boolean {
    const { minBytes, availableBytes } = this.#options;
    return minBytes === 0 || availableBytes() >= minBytes;
  }

  /** Resolves when a start may go on. `onWait` is told why it has to wait; the signal ends the waiting. */
  async pass(onWait: (why: string) => void, signal: AbortSignal): Promise<void> {
    if (this.isOpen) return;
    const { minBytes, availableBytes } = this.#options;
    onWait(
      `waiting for memory: the machine has ${mebibytes(availableBytes())} MiB available, and starts wait until there are ${mebibytes(minBytes)} MiB (the server's minAvailableMemoryMb)`,
    );
    const turn = Promise.withResolvers<void>();
    const onAbort = () => {
      const at = this.#waiting.indexOf(turn.resolve);
      if (at >= 0) this.#waiting.splice(at, 1);
      turn.reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else this.#waiting.push(turn.resolve);
    void this.#check();
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    while (this.#waiting.length > 0) {
      await pause(this.#options.pollMs, undefined, { ref: false });
      if (this.hasMemory) this.#waiting.shift()?.();
    }
    this.#isChecking = false;
  }
}

function mebibytes(bytes: number): number {
  return Math.floor(bytes / 1024 ** 2);
}
