import { setImmediate } from "node:timers/promises";

/** Long enough that breaks cost little, and short enough that other requests do not notice the work. */
const WORK_MS = 5;

/**
 * Lets other work of this process run. Embedded stores answer without waiting, so a loop over many rows would otherwise hold the process
 * until its end.
 */
export class Breaks {
  #since = performance.now();

  /** Called between the items of long work. Waits for the other work only if enough time has passed since the last break. */
  async take(): Promise<void> {
    if (performance.now() - this.#since < WORK_MS) return;
    await setImmediate();
    this.#since = performance.now();
  }
}
