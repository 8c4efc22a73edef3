import { PlatformError } from "@aenv/contract";

/** Kinds of work. Each has limits and a queue of its own; a creation may include a process start. */
export type WorkKind = "creations" | "children" | "verifications" | "process starts" | "task sandboxes" | "rollouts";

/** `now`: a caller waits for the result. `ahead`: done before it is needed. */
export type Urgency = "now" | "ahead";

export interface WorkLimits {
  readonly atOnce: number;
  readonly atOncePerOwner?: number;
  /**
   * Places beyond `atOnce`, for owners with fewer than `perOwner` at work. One owner can fill `atOnce`, so none is idle while there is
   * work, but never the reserve: what one owner runs, even if it hangs, does not delay the first work of another. With up to
   * `places / perOwner + 1` owners, each always gets `perOwner`, which is at most `atOnce`.
   */
  readonly reserve?: { readonly places: number; readonly perOwner: number };
  /** Work done ahead at the same time. */
  readonly aheadAtOnce?: number;
  readonly maxWaiting?: number;
  readonly maxWaitingPerOwner?: number;
}

export interface Work {
  readonly kind: WorkKind;
  /** Work is queued fairly between owners. */
  readonly owner: string;
  /** `now` by default. */
  readonly urgency?: Urgency;
}

/**
 * Decides when work may run. Urgent work goes first; within an urgency, owners take turns, so that an owner with a thousand requests
 * does not delay an owner with one. When too many are waiting, the next request is refused at once.
 */
export class Scheduler {
  readonly #queues: Readonly<Record<WorkKind, Queue>>;

  /** A kind without limits is never queued. */
  constructor(limits: Partial<Record<WorkKind, WorkLimits>>) {
    const queueOf = (kind: WorkKind) => new Queue(kind, limits[kind] ?? { atOnce: Number.POSITIVE_INFINITY });
    this.#queues = {
      creations: queueOf("creations"),
      children: queueOf("children"),
      verifications: queueOf("verifications"),
      "process starts": queueOf("process starts"),
      "task sandboxes": queueOf("task sandboxes"),
      rollouts: queueOf("rollouts"),
    };
  }

  /** How many are waiting. */
  depth(kind: WorkKind): number {
    return this.#queues[kind].depth;
  }

  /** The signal ends the waiting; the work itself handles it from then on. */
  async run<T>({ kind, owner, urgency = "now" }: Work, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const queue = this.#queues[kind];
    signal?.throwIfAborted();
    if (queue.hasCapacity(owner, urgency)) queue.begin(owner, urgency);
    else await queue.wait(owner, urgency, signal);
    try {
      return await work();
    } finally {
      queue.end(owner, urgency);
    }
  }
}

interface Waiting {
  readonly start: () => void;
}

/** The queue of one kind of work. Whenever there is capacity, only work of owners at their own limit or share is waiting. */
class Queue {
  readonly #kind: WorkKind;
  readonly #limits: Required<WorkLimits>;
  /** Starts that wait, by owner; the order of the owners is that of their turns. */
  readonly #waiting: Readonly<Record<Urgency, Map<string, Waiting[]>>> = { now: new Map(), ahead: new Map() };
  readonly #runningOf = new Map<string, number>();
  #running = 0;
  #runningAhead = 0;
  #depth = 0;

  constructor(kind: WorkKind, limits: WorkLimits) {
    this.#kind = kind;
    const unlimited = Number.POSITIVE_INFINITY;
    this.#limits = {
      atOncePerOwner: unlimited,
      reserve: { places: 0, perOwner: 0 },
      aheadAtOnce: unlimited,
      maxWaiting: unlimited,
      maxWaitingPerOwner: unlimited,
      ...limits,
    };
  }

  get depth(): number {
    return this.#depth;
  }

  hasCapacity(owner: string, urgency: Urgency): boolean {
    const { atOnce, atOncePerOwner, aheadAtOnce, reserve } = this.#limits;
    if (this.#isFull() || (urgency === "ahead" && this.#runningAhead >= aheadAtOnce)) return false;
    const own = this.#runningOf.get(owner) ?? 0;
    return own < atOncePerOwner && (this.#running < atOnce || own < reserve.perOwner);
  }

  begin(owner: string, urgency: Urgency): void {
    this.#running++;
    if (urgency === "ahead") this.#runningAhead++;
    this.#runningOf.set(owner, (this.#runningOf.get(owner) ?? 0) + 1);
  }

  end(owner: string, urgency: Urgency): void {
    this.#running--;
    if (urgency === "ahead") this.#runningAhead--;
    const left = (this.#runningOf.get(owner) ?? 0) - 1;
    if (left > 0) this.#runningOf.set(owner, left);
    else this.#runningOf.delete(owner);
    while (this.#startNext("now") || this.#startNext("ahead"));
  }

  async wait(owner: string, urgency: Urgency, signal: AbortSignal | undefined): Promise<void> {
    this.#refuseIfFull(owner, urgency);
    return new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        if (this.#remove(owner, urgency, waiting)) reject(signal?.reason);
      };
      const waiting: Waiting = {
        start: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const queued = this.#waiting[urgency].get(owner);
      if (queued === undefined) this.#waiting[urgency].set(owner, [waiting]);
      else queued.push(waiting);
      this.#depth++;
    });
  }

  #refuseIfFull(owner: string, urgency: Urgency): void {
    const { maxWaiting, maxWaitingPerOwner } = this.#limits;
    const own = this.#waiting[urgency].get(owner)?.length ?? 0;
    if (this.#depth >= maxWaiting) throw busy(`the server is busy: ${this.#depth} ${this.#kind} are waiting`);
    if (own >= maxWaitingPerOwner) throw busy(`${own} ${this.#kind} of '${owner}' are waiting already`);
  }

  #startNext(urgency: Urgency): boolean {
    if (this.#isFull()) return false;
    const owners = this.#waiting[urgency];
    for (const [owner, queued] of owners) {
      if (!this.hasCapacity(owner, urgency)) continue;
      const waiting = queued.shift();
      // The owner's next turn comes after all others: a map keeps the order of insertion.
      owners.delete(owner);
      if (queued.length > 0) owners.set(owner, queued);
      if (waiting === undefined) continue;
      this.#depth--;
      this.begin(owner, urgency);
      waiting.start();
      return true;
    }
    return false;
  }

  #isFull(): boolean {
    return this.#running >= this.#limits.atOnce + this.#limits.reserve.places;
  }

  #remove(owner: string, urgency: Urgency, waiting: Waiting): boolean {
    const queued = this.#waiting[urgency].get(owner) ?? [];
    const at = queued.indexOf(waiting);
    if (at < 0) return false;
    queued.splice(at, 1);
    if (queued.length === 0) this.#waiting[urgency].delete(owner);
    this.#depth--;
    return true;
  }
}

function busy(why: string): PlatformError {
  return new PlatformError("quota.exceeded", `${why}; try again in a moment`, { details: { retryAfterSeconds: 1 } });
}
