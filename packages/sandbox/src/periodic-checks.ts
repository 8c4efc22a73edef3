/** Visits everyone once in each period, a few at a time, so that many sandboxes never hold up the event loop at once. */
export class Rounds<T> {
  readonly #periodMs: number;
  readonly #visit: (one: T) => void;
  readonly #members = new Set<T>();
  #waiting: T[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(periodMs: number, visit: (one: T) => void) {
    this.#periodMs = periodMs;
    this.#visit = visit;
  }

  add(member: T): void {
    this.#members.add(member);
    this.#timer ??= setInterval(() => this.#tick(), this.#periodMs / STEPS).unref();
  }

  delete(member: T): void {
    this.#members.delete(member);
    if (this.#members.size === 0) this.close();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#members.clear();
    this.#waiting = [];
  }

  #tick(): void {
    if (this.#waiting.length === 0) this.#waiting = [...this.#members];
    const share = Math.ceil(this.#members.size / STEPS);
    for (const member of this.#waiting.splice(0, share)) if (this.#members.has(member)) this.#visit(member);
  }
}

const STEPS = 5;
