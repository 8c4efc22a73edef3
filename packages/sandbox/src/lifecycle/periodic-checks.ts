/** Checks every member once in each period, a few at a time, so that many sandboxes do not block the event loop. */
export class PeriodicChecks<T> {
  readonly #periodMs: number;
  readonly #check: (member: T) => void;
  readonly #members = new Set<T>();
  #pending: T[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(periodMs: number, check: (member: T) => void) {
    this.#periodMs = periodMs;
    this.#check = check;
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
    this.#pending = [];
  }

  #tick(): void {
    if (this.#pending.length === 0) this.#pending = [...this.#members];
    const share = Math.ceil(this.#members.size / STEPS);
    for (const member of this.#pending.splice(0, share)) if (this.#members.has(member)) this.#check(member);
  }
}

const STEPS = 5;
