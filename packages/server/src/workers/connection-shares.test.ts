import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConnectionShares } from "./connection-shares.ts";

/** Workers behind channels that keep the order of their messages and may be slow. */
class Port {
  readonly workers: Worker[] = [];
  readonly #shares: ConnectionShares<Worker>;

  constructor(max: number, count: number) {
    this.#shares = new ConnectionShares<Worker>(max, count, (worker, limit) => worker.inbox.push(limit));
    for (let at = 0; at < count; at++) this.replace(at);
  }

  get open(): number {
    return this.workers.reduce((total, { open }) => total + open, 0);
  }

  /** The worker ends with its connections, and another one starts. */
  replace(at: number): void {
    const ended = this.workers[at];
    if (ended !== undefined) this.#shares.remove(ended);
    const worker = { open: 0, limit: 0, applied: 0, inbox: [], outbox: [] };
    this.workers[at] = worker;
    this.#shares.add(worker);
  }

  connect(at: number, wanted: number): number {
    const worker = this.workers[at] as Worker;
    const accepted = Math.min(wanted, Math.max(0, worker.limit - worker.open));
    worker.open += accepted;
    return accepted;
  }

  disconnect(at: number, wanted: number): void {
    const worker = this.workers[at] as Worker;
    worker.open = Math.max(0, worker.open - wanted);
  }

  count(at: number): void {
    const { outbox, open, applied } = this.workers[at] as Worker;
    outbox.push([open, applied]);
  }

  /** The next message to the worker arrives, which confirms it. */
  tell(at: number): void {
    const worker = this.workers[at] as Worker;
    const limit = worker.inbox.shift();
    if (limit === undefined) return;
    worker.limit = limit;
    worker.applied++;
    this.count(at);
  }

  /** The next message of the worker arrives. */
  hear(at: number): void {
    const worker = this.workers[at] as Worker;
    const message = worker.outbox.shift();
    if (message !== undefined) this.#shares.report(worker, ...message);
  }

  /** All messages arrive, and those that follow from them. */
  settle(): void {
    for (const at of this.workers.keys()) this.count(at);
    const isQuiet = () => this.workers.every(({ inbox, outbox }) => inbox.length + outbox.length === 0);
    for (let round = 0; !isQuiet(); round++) {
      if (round > 1_000) throw new Error("the messages do not end");
      for (const at of this.workers.keys()) {
        this.tell(at);
        this.hear(at);
      }
    }
  }
}

interface Worker {
  open: number;
  limit: number;
  applied: number;
  readonly inbox: number[];
  readonly outbox: [open: number, applied: number][];
}

describe("the connections of workers", () => {
  it("are divided equally, and each worker has its share from the start", () => {
    const port = new Port(100, 2);
    port.settle();
    expect(port.workers.map(({ limit }) => limit)).toEqual([50, 50]);
  });

  it("go to the worker that needs them, and need few messages", () => {
    const port = new Port(1_000, 2);
    port.settle();
    let told = 0;
    for (let n = 0; n < 999; n++) {
      expect(port.connect(0, 1)).toBe(1);
      port.count(0);
      told += port.workers.reduce((count, { inbox }) => count + inbox.length, 0);
      port.settle();
    }
    expect(port.open).toBe(999);
    expect(told).toBeLessThan(100);
  });

  it("are free again when a worker has ended", () => {
    const port = new Port(10, 2);
    port.settle();
    expect([port.connect(0, 9), port.connect(1, 9)]).toEqual([5, 5]);
    port.settle();
    port.replace(0);
    port.settle();
    expect([port.connect(0, 9), port.connect(1, 9)].sort()).toEqual([2, 3]);
  });

  it("never exceed the limit of the port, however late messages are, and all of them can be used in the end", () => {
    const action = fc.tuple(
      fc.constantFrom("connect", "disconnect", "count", "tell", "tell", "hear", "hear", "replace"),
      fc.nat(),
      fc.integer({ min: 1, max: 40 }),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 60 }),
        fc.array(action, { maxLength: 200 }),
        (count, max, actions) => {
          const port = new Port(max, count);
          for (const [what, which, amount] of actions) {
            port[what](which % count, amount);
            expect(port.open).toBeLessThanOrEqual(max);
          }
          port.settle();
          for (let round = 0; round < 20; round++) {
            for (const at of port.workers.keys()) port.connect(at, max);
            port.settle();
          }
          expect(port.open).toBe(max);
        },
      ),
    );
  });
});
