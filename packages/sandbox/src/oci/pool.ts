import { type WarmKind, WarmPool } from "../pool/warm-pool.ts";
import { type ContainerRecord, type ContainerSpec, fixedLimits } from "./container.ts";

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

/** The creator of the next sandbox hears of the same failure, so the next `fill` tries again. */
const NO_BACKOFF = { firstMs: 0, longestMs: 0 };
const HALF_LIFE_MS = 10_000;

/** Containers that wait for a program or a checkpoint. They have only the limits that cannot be set later; whoever takes one sets the others. */
export class ContainerPool<T extends { readonly record: ContainerRecord }> {
  readonly #options: ContainerPoolOptions<T>;
  readonly #pool: WarmPool<ContainerSpec, T>;

  constructor(options: ContainerPoolOptions<T>) {
    this.#options = options;
    const { create, isRunning, size, total, hasMemory, idleMs, now } = options;
    const isUnused = ({ demand }: WarmKind<ContainerSpec, T>) => demand.isIdle(now(), idleMs);
    this.#pool = new WarmPool({
      create: ({ spec }, signal) => create(spec, signal),
      destroy: (waiting) => this.remove(waiting),
      isUsable: isRunning,
      steps: (kinds) =>
        kinds
          .toSorted((one, other) => other.demand.usedAt - one.demand.usedAt)
          .map((kind) => [{ name: kind.name, upTo: isUnused(kind) ? 0 : size }]),
      budget: () => {
        let left = hasMemory() ? total : 0;
        return () => left-- > 0;
      },
      hasRoom: hasMemory,
      isUnused,
      halfLifeMs: HALF_LIFE_MS,
      backoff: NO_BACKOFF,
      now,
    });
  }

  get isFrozen(): boolean {
    return this.#options.isFrozen ?? false;
  }

  /** How many containers wait. */
  get size(): number {
    return this.#pool.kinds.reduce((sum, { held }) => sum + held.length, 0);
  }

  /** A waiting container of this kind, or null. Either way, the next `fill` creates more. */
  take(spec: ContainerSpec): T | null {
    if (this.#options.size === 0 || this.#pool.signal.aborted) return null;
    const { runtime, files, capabilities, initPath, checkpoint } = spec;
    const resources = fixedLimits(spec.resources);
    const name = JSON.stringify([runtime, files.layers, resources, capabilities, initPath, checkpoint]);
    return this.#pool.take(this.#pool.find(name) ?? this.#pool.add(name, { ...spec, resources }));
  }

  /** Creates the containers that are missing, one at a time of each kind, and removes those that are too many. Never rejects. */
  async fill(): Promise<void> {
    await this.#pool.trim();
    await this.#pool.fillAll();
    // While one was created, others may have become more important.
    await this.#pool.trim();
  }

  /** Removes those of these kinds, because their checkpoint or their files are about to be removed. Waits for one that is being created. */
  async forget(isRemoved: (spec: ContainerSpec) => boolean): Promise<void> {
    for (const kind of this.#pool.kinds) {
      if (!isRemoved(kind.spec)) continue;
      await this.#pool.drop(kind);
      await kind.filling;
    }
  }

  close(): Promise<void> {
    return this.#pool.close(new Error("the engine is closed"));
  }

  /** Removes a container that was taken and is of no use. What cannot be removed now is removed by the next engine. */
  async remove(waiting: T): Promise<void> {
    await this.#options.remove(waiting).catch(() => undefined);
  }
}
