/** The longest that a timer of Node's can wait. */
const LONGEST_MS = 2 ** 31 - 1;

/** One alarm a name; each rings once, at its time and not at the next sweep. */
export class Alarms {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #ring: (name: string) => void;
  readonly #now: () => number;

  constructor(ring: (name: string) => void, now: () => number = Date.now) {
    this.#ring = ring;
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
      else this.#ring(name);
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
