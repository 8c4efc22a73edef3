import type { ContainerRecord, ContainerSpec } from "./container.ts";

export interface ContainerPoolOptions<T> {
  readonly create: (spec: ContainerSpec, signal: AbortSignal) => Promise<T>;
  readonly isRunning: (waiting: T) => boolean;
  readonly remove: (waiting: T) => Promise<void>;
  /** Containers that wait, of each kind that was asked for. */
  readonly size: number;
  /** A kind that nobody has asked for in this time keeps none. */
  readonly idleMs: number;
  readonly now: () => number;
}

interface Kind<T> {
  readonly spec: ContainerSpec;
  readonly waiting: T[];
  usedAt: number;
  filling: Promise<void> | null;
}

/** Containers that wait for a program or a checkpoint. They have no limits but that of the disk; whoever takes one sets them. */
export class ContainerPool<T extends { readonly record: ContainerRecord }> {
  readonly #options: ContainerPoolOptions<T>;
  readonly #kinds = new Map<string, Kind<T>>();
  readonly #closing = new AbortController();

  constructor(options: ContainerPoolOptions<T>) {
    this.#options = options;
  }

  /** How many containers wait. */
  get size(): number {
    return [...this.#kinds.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** A waiting container of this kind, or null. Either way, the next `fill` creates more. */
  take(spec: Omit<ContainerSpec, "limits">): T | null {
    if (this.#options.size === 0 || this.#closing.signal.aborted) return null;
    const key = JSON.stringify([spec.runtime, spec.files.layers, spec.diskMb, spec.initPath]);
    let kind = this.#kinds.get(key);
    if (kind === undefined) {
      kind = { spec: { ...spec, limits: {} }, waiting: [], usedAt: 0, filling: null };
      this.#kinds.set(key, kind);
    }
    kind.usedAt = this.#options.now();
    return this.#firstRunning(kind);
  }

  /** Creates the containers that are missing, one at a time, and removes those of kinds that are no longer used. Never rejects. */
  async fill(): Promise<void> {
    const oldest = this.#options.now() - this.#options.idleMs;
    for (const [key, kind] of this.#kinds) {
      if (kind.usedAt < oldest && kind.filling === null) {
        this.#kinds.delete(key);
        await this.#drop(kind);
      } else
        kind.filling ??= this.#fillKind(kind).finally(() => {
          kind.filling = null;
        });
    }
    await Promise.all([...this.#kinds.values()].map(({ filling }) => filling));
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the engine is closed"));
    for (const kind of this.#kinds.values()) {
      await kind.filling;
      await this.#drop(kind);
    }
    this.#kinds.clear();
  }

  #firstRunning(kind: Kind<T>): T | null {
    for (let next = kind.waiting.shift(); next !== undefined; next = kind.waiting.shift()) {
      if (this.#options.isRunning(next)) return next;
      void this.remove(next);
    }
    return null;
  }

  async #fillKind(kind: Kind<T>): Promise<void> {
    const { create, size } = this.#options;
    while (kind.waiting.length < size && !this.#closing.signal.aborted) {
      // A failure is the same for the next sandbox, whose creator hears of it.
      const created = await create(kind.spec, this.#closing.signal).catch(() => null);
      if (created === null) return;
      kind.waiting.push(created);
    }
  }

  async #drop(kind: Kind<T>): Promise<void> {
    await Promise.all(kind.waiting.splice(0).map((container) => this.remove(container)));
  }

  /** Removes a container that was taken and is of no use. What cannot be removed now is removed by the next engine. */
  async remove(waiting: T): Promise<void> {
    await this.#options.remove(waiting).catch(() => undefined);
  }
}
