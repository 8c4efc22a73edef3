import { PlatformError } from "@aenv/contract";

export interface FairQueueOptions {
  readonly atOnce: number;
  readonly maxWaiting: number;
  /** As many as there can be unless told otherwise. */
  readonly atOncePerOwner?: number;
  readonly maxWaitingPerOwner?: number;
  /** What waits, for the message of a refusal. */
  readonly what?: string;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: unknown) => void;
}

/**
 * Lets so many work at once and the others wait, owner by owner in turn: who asks for a thousand does not stand before who
 * asks for one. When too many wait, the next is refused at once rather than everyone later.
 */
export class FairQueue {
  readonly #options: Required<FairQueueOptions>;
  readonly #lines = new Map<string, Waiting[]>();
  readonly #workingOf = new Map<string, number>();
  #working = 0;
  #waiting = 0;

  constructor(options: FairQueueOptions) {
    const { atOnce, maxWaiting } = options;
    this.#options = { atOncePerOwner: atOnce, maxWaitingPerOwner: maxWaiting, what: "creations", ...options };
  }

  get depth(): number {
    return this.#waiting;
  }

  async run<T>(owner: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    // Whenever a place is free, only those wait whose owner has no place left.
    if (this.#hasPlace(owner)) this.#begin(owner);
    else await this.#wait(owner, signal);
    try {
      return await work();
    } finally {
      this.#end(owner);
      this.#next();
    }
  }

  #hasPlace(owner: string): boolean {
    const { atOnce, atOncePerOwner } = this.#options;
    return this.#working < atOnce && (this.#workingOf.get(owner) ?? 0) < atOncePerOwner;
  }

  #begin(owner: string): void {
    this.#working++;
    this.#workingOf.set(owner, (this.#workingOf.get(owner) ?? 0) + 1);
  }

  #end(owner: string): void {
    this.#working--;
    const left = (this.#workingOf.get(owner) ?? 0) - 1;
    if (left > 0) this.#workingOf.set(owner, left);
    else this.#workingOf.delete(owner);
  }

  #wait(owner: string, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaiting, maxWaitingPerOwner, what } = this.#options;
    const own = this.#lines.get(owner)?.length ?? 0;
    if (this.#waiting >= maxWaiting) throw busy(`the server is busy: ${this.#waiting} ${what} are waiting`);
    if (own >= maxWaitingPerOwner) throw busy(`${own} ${what} of '${owner}' are waiting already`);
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
    for (const [owner, line] of this.#lines) {
      if (!this.#hasPlace(owner)) continue;
      const waiting = line.shift();
      // To the end of the round: the map keeps the order in which owners come to be set.
      this.#lines.delete(owner);
      if (line.length > 0) this.#lines.set(owner, line);
      if (waiting === undefined) continue;
      this.#waiting--;
      this.#begin(owner);
      waiting.start();
      return;
    }
  }

  #leave(owner: string, waiting: Waiting, reason: unknown): void {
    const line = this.#lines.get(owner) ?? [];
    const at = line.indexOf(waiting);
    if (at < 0) return;
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(owner);
    this.#waiting--;
    waiting.refuse(reason);
  }
}

function busy(why: string): PlatformError {
  return new PlatformError("quota.exceeded", `${why}; try again in a moment`, { details: { retryAfterSeconds: 1 } });
}
