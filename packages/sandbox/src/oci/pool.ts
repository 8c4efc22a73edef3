import type { ContainerRecord, ContainerSpec } from "./container.ts";

export interface ContainerPoolOptions<T> {
  readonly create: (spec: ContainerSpec, signal: AbortSignal) => Promise<T>;
  readonly isRunning: (waiting: T) => boolean;
  readonly remove: (waiting: T) => Promise<void>;
  /** Whether they are frozen while they wait. */
  readonly isFrozen?: boolean;
  /** Containers that wait, of each kind that was asked for. */
  readonly size: number;
  /** Containers that wait, of all kinds together. Kinds that were asked for last come first. */
  readonly total: number;
  /** Whether there is memory for containers that wait. Without it, none does. */
  readonly hasMemory: () => boolean;
  /** A kind that nobody has asked for in this time keeps none. */
  readonly idleMs: number;
  readonly now: () => number;
}

interface Kind<T> {
  readonly spec: ContainerSpec;
  readonly waiting: T[];
  usedAt: number;
  /** How many may wait, as of the last `fill`. */
  allowed: number;
  filling: Promise<void> | null;
}

/** Containers that wait for a program or a checkpoint. They have no limits but that of the disk; whoever takes one sets them. */
export class ContainerPool<T extends { readonly record: ContainerRecord }> {
  readonly #options: ContainerPoolOptions<T>;
  /** Those that were asked for last are at the end. */
  readonly #kinds = new Map<string, Kind<T>>();
  readonly #closing = new AbortController();

  constructor(options: ContainerPoolOptions<T>) {
    this.#options = options;
  }

  get isFrozen(): boolean {
    return this.#options.isFrozen ?? false;
  }

  /** How many containers wait. */
  get size(): number {
    return [...this.#kinds.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** A waiting container of this kind, or null. Either way, the next `fill` creates more. */
  take(spec: Omit<ContainerSpec, "limits">): T | null {
    if (this.#options.size === 0 || this.#closing.signal.aborted) return null;
    const { runtime, files, diskMb, shmMb, capabilities, initPath, checkpoint } = spec;
    const key = JSON.stringify([runtime, files.layers, diskMb, shmMb, capabilities, initPath, checkpoint]);
    const kind = this.#kinds.get(key) ?? { spec: { ...spec, limits: {} }, waiting: [], usedAt: 0, allowed: 0, filling: null };
    this.#kinds.delete(key);
    this.#kinds.set(key, kind);
    kind.usedAt = this.#options.now();
    return this.#firstRunning(kind);
  }

  /** Creates the containers that are missing, one at a time of each kind, and removes those that are too many. Never rejects. */
  async fill(): Promise<void> {
    this.#allot();
    await Promise.all(
      [...this.#kinds].map(async ([key, kind]) => {
        await this.#drop(kind, kind.allowed);
        if (this.#isIdle(kind) && kind.filling === null) {
          this.#kinds.delete(key);
          return;
        }
        kind.filling ??= this.#fillKind(kind).finally(() => {
          kind.filling = null;
        });
        await kind.filling;
      }),
    );
  }

  /** Removes those of these kinds, because their checkpoint or their files are about to be removed. Waits for one that is being created. */
  async forget(isRemoved: (spec: ContainerSpec) => boolean): Promise<void> {
    for (const [key, kind] of this.#kinds) {
      if (!isRemoved(kind.spec)) continue;
      this.#kinds.delete(key);
      kind.allowed = 0;
      await this.#drop(kind, 0);
      // One that is being created is removed by `#fillKind`.
      await kind.filling;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the engine is closed"));
    for (const kind of this.#kinds.values()) {
      await kind.filling;
      await this.#drop(kind, 0);
    }
    this.#kinds.clear();
  }

  #allot(): void {
    const { size, total, hasMemory } = this.#options;
    let left = hasMemory() ? total : 0;
    for (const kind of [...this.#kinds.values()].reverse()) {
      kind.allowed = this.#isIdle(kind) ? 0 : Math.min(size, left);
      left -= kind.allowed;
    }
  }

  #isIdle({ usedAt }: Kind<T>): boolean {
    return usedAt < this.#options.now() - this.#options.idleMs;
  }

  #firstRunning(kind: Kind<T>): T | null {
    for (let next = kind.waiting.shift(); next !== undefined; next = kind.waiting.shift()) {
      if (this.#options.isRunning(next)) return next;
      void this.remove(next);
    }
    return null;
  }

  async #fillKind(kind: Kind<T>): Promise<void> {
    const { create, hasMemory } = this.#options;
    while (kind.waiting.length < kind.allowed && hasMemory() && !this.#closing.signal.aborted) {
      // A failure is the same for the next sandbox, whose creator hears of it.
      const created = await create(kind.spec, this.#closing.signal).catch(() => null);
      if (created === null) return;
      kind.waiting.push(created);
      // `forget` may have been called meanwhile.
      await this.#drop(kind, kind.allowed);
    }
  }

  /** Keeps so many of a kind. */
  async #drop(kind: Kind<T>, kept: number): Promise<void> {
    await Promise.all(kind.waiting.splice(kept).map((container) => this.remove(container)));
  }

  /** Removes a container that was taken and is of no use. What cannot be removed now is removed by the next engine. */
  async remove(waiting: T): Promise<void> {
    await this.#options.remove(waiting).catch(() => undefined);
  }
}
