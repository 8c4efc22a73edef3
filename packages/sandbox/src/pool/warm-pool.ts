import { setTimeout as pause } from "node:timers/promises";
import { type Backoff, pauseAfter } from "@aenv/contract";
import { Demand } from "./demand.ts";
import { type Budget, type Share, share } from "./share.ts";

/** Those of a kind stand in for each other until they are taken. */
export interface WarmKind<S, T> {
  readonly name: string;
  readonly spec: S;
  readonly demand: Demand;
  /** Those that wait, oldest first. */
  readonly held: T[];
  /** How many are being created. */
  creating: number;
  /** How many should wait. */
  target: number;
  /** Why the kind is not filled; null after a success. */
  failure: WarmFailure | null;
  filling: Promise<void> | null;
}

export interface WarmFailure {
  /** How many there were in a row. */
  readonly count: number;
  readonly retryAt: number;
  readonly error: unknown;
}

export interface WarmPoolOptions<S, T> {
  /** Creates one. Null if none is to be held here: it was created elsewhere, or it waits elsewhere. */
  readonly create: (kind: WarmKind<S, T>, signal: AbortSignal) => Promise<T | null>;
  readonly destroy: (waiting: T) => Promise<void>;
  /** How many of each kind are wanted, the most important first. */
  readonly steps: (kinds: readonly WarmKind<S, T>[], now: number) => readonly (readonly Share[])[];
  /** Room for all that wait. */
  readonly budget: () => Budget;
  /** Asked before one of the kind is created, because the room may have changed since the targets were set. */
  readonly hasRoom?: (kind: WarmKind<S, T>) => boolean;
  /** Whether the kind is forgotten, with all of it that wait. */
  readonly isUnused: (kind: WarmKind<S, T>, now: number) => boolean;
  /** Those of a kind that are too many; by default all beyond the target, the newest first. */
  readonly surplus?: (kind: WarmKind<S, T>) => readonly T[];
  /** Whether one that waited can be taken. */
  readonly isUsable?: (waiting: T) => boolean;
  /** Resolves when one that waits has ended by itself. */
  readonly ended?: (waiting: T) => Promise<unknown>;
  /** Those that wait elsewhere, and not in this process. */
  readonly waiting?: (name: string) => readonly T[];
  /** Called when a kind is forgotten, for what it has besides those that wait. */
  readonly forget?: (spec: S) => Promise<void>;
  /** Called after `create` has failed, with the failure before that. */
  readonly onFailure?: (kind: WarmKind<S, T>, error: unknown, last: WarmFailure | null) => void;
  readonly halfLifeMs: number;
  readonly backoff?: Backoff;
  readonly now: () => number;
}

/** What was created ahead of need and waits, in kinds. How many of each wait follows the demand, within a budget. */
export class WarmPool<S, T> {
  readonly #options: WarmPoolOptions<S, T>;
  readonly #kinds = new Map<string, WarmKind<S, T>>();
  readonly #closing = new AbortController();
  /** Also those of kinds that were dropped meanwhile. */
  readonly #fillings = new Set<Promise<void>>();

  constructor(options: WarmPoolOptions<S, T>) {
    this.#options = options;
  }

  /** Aborted when the pool is closed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  get kinds(): readonly WarmKind<S, T>[] {
    return [...this.#kinds.values()];
  }

  find(name: string): WarmKind<S, T> | null {
    return this.#kinds.get(name) ?? null;
  }

  /** A new kind. One that had the name is not filled any more. */
  add(name: string, spec: S): WarmKind<S, T> {
    const { now, halfLifeMs } = this.#options;
    const demand = new Demand(now(), halfLifeMs);
    const kind: WarmKind<S, T> = { name, spec, demand, held: [], creating: 0, target: 0, failure: null, filling: null };
    this.#kinds.set(name, kind);
    return kind;
  }

  /** Takes one that waits, or returns null. Either way it is demand. */
  take(kind: WarmKind<S, T>): T | null {
    const { now, isUsable = () => true } = this.#options;
    kind.demand.note(now());
    for (let next = kind.held.shift(); next !== undefined; next = kind.held.shift()) {
      if (isUsable(next)) return next;
      void this.#options.destroy(next).catch(() => {});
    }
    return null;
  }

  /** Sets how many of each kind should wait. */
  retarget(): void {
    const { steps, budget, now } = this.#options;
    const targets = share(steps(this.kinds, now()), budget());
    for (const kind of this.#kinds.values()) kind.target = targets.get(kind.name) ?? 0;
  }

  /** Sets the targets, forgets kinds without use, and destroys those that are too many. */
  async trim(): Promise<void> {
    this.retarget();
    const { isUnused, now, surplus = ({ held, target }) => held.slice(target) } = this.#options;
    await Promise.all(
      this.kinds.map((kind) => (isUnused(kind, now()) && kind.filling === null ? this.drop(kind) : this.#destroy(kind, surplus(kind)))),
    );
  }

  /** Creates those that are missing. Never rejects: a failure is reported to `onFailure` and retried after a backoff. */
  fill(kind: WarmKind<S, T>, afterMs = 0): Promise<void> {
    if (kind.failure !== null && this.#options.now() < kind.failure.retryAt) return Promise.resolve();
    if (kind.filling !== null) return kind.filling;
    const filling = this.#fill(kind, afterMs).finally(() => {
      kind.filling = null;
      this.#fillings.delete(filling);
    });
    this.#fillings.add(filling);
    kind.filling = filling;
    return filling;
  }

  async fillAll(): Promise<void> {
    await Promise.all(this.kinds.map((kind) => this.fill(kind)));
  }

  /** Forgets a kind and destroys those that wait. One that is being created is destroyed at the end of `kind.filling`. */
  async drop(kind: WarmKind<S, T>): Promise<void> {
    if (this.#isCurrent(kind)) this.#kinds.delete(kind.name);
    await Promise.all([this.#options.forget?.(kind.spec), this.#destroy(kind, this.#waiting(kind))]);
  }

  /** Destroys one of the kind with the least demand, so that there is room for one that is needed. False if none waits. */
  async makeRoom(): Promise<boolean> {
    const now = this.#options.now();
    const rate = ({ demand }: WarmKind<S, T>) => demand.perSecond(now);
    const [kind] = this.kinds.filter(({ held }) => held.length > 0).sort((one, other) => rate(one) - rate(other));
    if (kind === undefined) return false;
    this.postpone(kind, new Error("its room was needed"));
    await this.#destroy(kind, kind.held.slice(-1));
    return true;
  }

  /** Does not fill the kind until the backoff has passed. */
  postpone(kind: WarmKind<S, T>, error: unknown): void {
    const { now, backoff } = this.#options;
    const count = (kind.failure?.count ?? 0) + 1;
    kind.failure = { count, retryAt: now() + pauseAfter(count, backoff), error };
  }

  /** Destroys those that are held here, and those that are being created. */
  async close(reason: Error): Promise<void> {
    this.#closing.abort(reason);
    const kinds = this.kinds;
    this.#kinds.clear();
    await Promise.all(this.#fillings);
    await Promise.all(kinds.flatMap((kind) => [this.#options.forget?.(kind.spec), this.#destroy(kind, kind.held)]));
  }

  /** Makes one at a time: many at once would slow down what is in use. */
  async #fill(kind: WarmKind<S, T>, afterMs: number): Promise<void> {
    const { signal } = this.#closing;
    try {
      if (afterMs > 0) await pause(afterMs, undefined, { signal, ref: false });
      while (this.#needsMore(kind)) await this.#create(kind);
      kind.failure = null;
    } catch (error) {
      if (signal.aborted) return;
      const last = kind.failure;
      this.postpone(kind, error);
      this.#options.onFailure?.(kind, error, last);
    }
  }

  #needsMore(kind: WarmKind<S, T>): boolean {
    if (this.signal.aborted || !this.#isCurrent(kind) || this.#waiting(kind).length >= kind.target) return false;
    return this.#options.hasRoom?.(kind) ?? true;
  }

  async #create(kind: WarmKind<S, T>): Promise<void> {
    const { create, destroy, ended } = this.#options;
    kind.creating++;
    const created = await create(kind, this.#closing.signal).finally(() => {
      kind.creating--;
    });
    if (created === null) return;
    // The kind may have been dropped meanwhile.
    if (!this.#isCurrent(kind)) return destroy(created);
    kind.held.push(created);
    void ended?.(created)
      .then(() =>
        this.#destroy(
          kind,
          kind.held.filter((one) => one === created),
        ),
      )
      .catch(() => {});
  }

  async #destroy(kind: WarmKind<S, T>, some: readonly T[]): Promise<void> {
    const gone = new Set(some);
    kind.held.splice(0, kind.held.length, ...kind.held.filter((one) => !gone.has(one)));
    await Promise.all([...gone].map((one) => this.#options.destroy(one)));
  }

  #waiting({ name, held }: WarmKind<S, T>): readonly T[] {
    return this.#options.waiting?.(name) ?? held;
  }

  #isCurrent(kind: WarmKind<S, T>): boolean {
    return this.#kinds.get(kind.name) === kind;
  }
}
