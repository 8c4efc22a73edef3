import type { Pod } from "./pod/types.ts";

/** How often pods are looked for that servers have left. */
const SWEEP_EVERY_MS = 15_000;

export interface SweepOptions {
  readonly everyMs?: number | undefined;
  /** The pods that no server needs any more. */
  readonly findLeft: () => readonly Pod[];
  readonly remove: (pod: Pod) => Promise<void>;
}

/**
 * Removes pods that servers have left, also while nobody lists sandboxes: a pod that a killed server was starting becomes one only when its
 * time is over. One that has just ended is first left to its own server, which reads its log.
 */
export class Sweeps {
  readonly #timer: NodeJS.Timeout;
  readonly #options: SweepOptions;
  /** The uids of pods that the last sweep found left. */
  #left: ReadonlySet<string> = new Set();

  constructor(options: SweepOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#sweep(), options.everyMs ?? SWEEP_EVERY_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #sweep(): Promise<void> {
    const left = this.#options.findLeft();
    const again = left.filter((pod) => this.#left.has(uidOf(pod)));
    // Those that are being removed are not removed twice.
    this.#left = new Set(left.filter((pod) => !again.includes(pod)).map(uidOf));
    await Promise.allSettled(again.map((pod) => this.#options.remove(pod)));
  }
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}
