/** The longest delay of a Node timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** One timer per name, for a point in time that may be further away than a Node timer can wait. */
export class Alarms {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #onAlarm: (name: string) => void;
  readonly #now: () => number;

  constructor(onAlarm: (name: string) => void, now: () => number = Date.now) {
    this.#onAlarm = onAlarm;
    this.#now = now;
  }

  get size(): number {
    return this.#timers.size;
  }

  set(name: string, at: number): void {
    clearTimeout(this.#timers.get(name));
    const wait = Math.min(Math.max(0, at - this.#now()), LONGEST_MS);
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      if (this.#now() < at) this.set(name, at);
      else this.#onAlarm(name);
    }, wait);
    this.#timers.set(name, timer.unref());
  }

  clear(name: string): void {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}
