import { PlatformError } from "@aenv/contract";

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: unknown) => void;
}

/**
 * Lets so many work at once and the others wait, owner by owner in turn: who asks for a thousand does not stand before who
 * asks for one. When too many wait, the next is refused at once rather than everyone later.
 */
export class FairQueue {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #lines = new Map<string, Waiting[]>();
  #working = 0;
  #waiting = 0;

  constructor(options: { readonly atOnce: number; readonly maxWaiting: number }) {
    this.#atOnce = options.atOnce;
    this.#maxWaiting = options.maxWaiting;
  }

  get depth(): number {
    return this.#waiting;
  }

  async run<T>(owner: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#working >= this.#atOnce || this.#waiting > 0) await this.#wait(owner, signal);
    else this.#working++;
    try {
      return await work();
    } finally {
      this.#working--;
      this.#next();
    }
  }

  #wait(owner: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting >= this.#maxWaiting) {
      throw new PlatformError("quota.exceeded", `the server is busy: ${this.#waiting} creations are waiting; try again in a moment`, {
        details: { retryAfterSeconds: 1 },
      });
    }
    signal?.throwIfAborted();
    return new Promise<void>((resolve, reject) => {
      const onAbort = () => this.#leave(owner, waiting, signal?.reason);
      const waiting: Waiting = {
        start: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
        refuse: reject,
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const line = this.#lines.get(owner);
      if (line === undefined) this.#lines.set(owner, [waiting]);
      else line.push(waiting);
      this.#waiting++;
    });
  }

  #next(): void {
    if (this.#working >= this.#atOnce) return;
    const [first] = this.#lines;
    if (first === undefined) return;
    const [owner, line] = first;
    const waiting = line.shift();
    // To the end of the round: the map keeps the order in which owners come to be set.
    this.#lines.delete(owner);
    if (line.length > 0) this.#lines.set(owner, line);
    if (waiting === undefined) this.#next();
    else {
      this.#waiting--;
      this.#working++;
      waiting.start();
    }
  }

  #leave(owner: string, waiting: Waiting, reason: unknown): void {
    const line = this.#lines.get(owner) ?? [];
    const at = line.indexOf(waiting);
    if (at < 0) return;
    line.splice(at, 1);
    this.#waiting--;
    waiting.refuse(reason);
  }
}
