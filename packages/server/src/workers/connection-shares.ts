/** The shares are divided anew when a worker has less than this part of its equal share left. */
const ENOUGH = 0.75;

interface Share {
  /** As the worker has counted last. */
  open: number;
  /** What the worker was told last, and how often it was told a limit. */
  limit: number;
  told: number;
  /** The most connections that it can have now: it may not have applied a lower limit yet. */
  held: number;
}

/**
 * Divides the connections of the port between its workers: each may have those that it has, and an equal share of those that are left. A
 * worker gets only what no other can use any more, so together they never exceed the limit, however late messages are.
 */
export class ConnectionShares<W> {
  readonly #max: number;
  readonly #count: number;
  readonly #tell: (worker: W, limit: number) => void;
  readonly #shares = new Map<W, Share>();

  /** `count` is how many workers there normally are. `tell` sends a worker its limit, and keeps the order. */
  constructor(max: number, count: number, tell: (worker: W, limit: number) => void) {
    this.#max = max;
    this.#count = count;
    this.#tell = tell;
  }

  /** A worker that accepts no connection until it is told a limit. */
  add(worker: W): void {
    this.#shares.set(worker, { open: 0, limit: 0, told: 0, held: 0 });
    this.#divide();
  }

  /** A worker that has ended, and its connections with it. */
  remove(worker: W): void {
    this.#shares.delete(worker);
    this.#divide();
  }

  /** What a worker has counted, and how many limits it had applied then. */
  report(worker: W, open: number, applied: number): void {
    const share = this.#shares.get(worker);
    if (share === undefined) return;
    share.open = open;
    if (applied === share.told) share.held = Math.max(open, share.limit);
    this.#divide();
  }

  #divide(): void {
    const shares = [...this.#shares.values()];
    const left = Math.max(0, this.#max - sum(shares.map(({ open }) => open)));
    const each = Math.floor(left / this.#count);
    const enough = Math.max(each * ENOUGH, Math.min(left, 1));
    if (shares.every(({ open, limit }) => limit - open >= enough)) return;
    let free = this.#max - sum(shares.map(({ held }) => held));
    for (const [at, [worker, share]] of [...this.#shares].entries()) {
      const wanted = share.open + each + (at < left % this.#count ? 1 : 0);
      const taken = Math.min(free, Math.max(0, wanted - share.held));
      const limit = Math.min(wanted, share.held + taken);
      free -= taken;
      if (limit === share.limit) continue;
      share.limit = limit;
      share.told++;
      share.held += taken;
      this.#tell(worker, limit);
    }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
