import { PlatformError } from "@aenv/contract";
import type { RolloutTable } from "./rollout-table.ts";

export interface UnfinishedLimits {
  /** Most unfinished rollouts of one owner. */
  readonly maxUnfinished: number;
  /** Most bytes of their requests. */
  readonly maxRequestBytes: number;
}

interface Amount {
  count: number;
  bytes: number;
}

/** The space of an owner for rollouts that are not done. What is being accepted counts too, so that requests at once cannot exceed it. */
export class UnfinishedCapacity {
  readonly #table: Pick<RolloutTable, "unfinishedOf">;
  readonly #limits: UnfinishedLimits;
  readonly #accepting = new Map<string, Amount>();

  constructor(table: Pick<RolloutTable, "unfinishedOf">, limits: UnfinishedLimits) {
    this.#table = table;
    this.#limits = limits;
  }

  /** Throws if the owner has no capacity for so many more. The returned function says that one of them is a row, or will not be one. */
  async reserve(owner: string, sizes: readonly number[]): Promise<{ release(bytes: number): void; releaseAll(): void }> {
    const accepting = this.#accepting.get(owner) ?? { count: 0, bytes: 0 };
    this.#accepting.set(owner, accepting);
    const others = { ...accepting };
    const own = { count: sizes.length, bytes: sizes.reduce((sum, bytes) => sum + bytes, 0) };
    add(accepting, own.count, own.bytes);
    const { count, bytes } = own;
    const release = (size: number) => {
      add(accepting, -1, -size);
      add(own, -1, -size);
    };
    const releaseAll = () => {
      add(accepting, -own.count, -own.bytes);
      add(own, -own.count, -own.bytes);
      if (accepting.count === 0) this.#accepting.delete(owner);
    };
    try {
      const unfinished = await this.#table.unfinishedOf(owner);
      this.#assertRoom(owner, { count: unfinished.count + others.count, bytes: unfinished.bytes + others.bytes }, { count, bytes });
    } catch (error) {
      releaseAll();
      throw error;
    }
    return { release, releaseAll };
  }

  #assertRoom(owner: string, used: Amount, more: Amount): void {
    const { maxUnfinished, maxRequestBytes } = this.#limits;
    if (used.count + more.count > maxUnfinished) {
      throw new PlatformError(
        "quota.exceeded",
        `'${owner}' has ${used.count} unfinished rollouts, and ${more.count} more would exceed the limit of ${maxUnfinished}; wait for some to end`,
        { details: { owner, maxUnfinished, retryAfterSeconds: 5 } },
      );
    }
    if (used.bytes + more.bytes > maxRequestBytes) {
      throw new PlatformError(
        "quota.exceeded",
        `the requests of '${owner}' for unfinished rollouts have ${used.bytes} bytes, and ${more.bytes} more would exceed the limit of ${maxRequestBytes} (rolloutRequestBytes); send less at once, or wait for some to end`,
        { details: { owner, bytes: used.bytes, moreBytes: more.bytes, maxBytes: maxRequestBytes, retryAfterSeconds: 5 } },
      );
    }
  }
}

function add(amount: Amount, count: number, bytes: number): void {
  amount.count += count;
  amount.bytes += bytes;
}
