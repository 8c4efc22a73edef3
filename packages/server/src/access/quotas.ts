import { PlatformError } from "@aenv/contract";

/** The limits of one owner. */
export interface Limits {
  readonly instances: number;
  readonly createsPerSecond: number;
  readonly blobBytes: number;
  /** Stored snapshots: how many, and their size. */
  readonly snapshots: number;
  readonly snapshotBytes: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** Limits per owner; the server's limits apply where an owner has none of its own. */
export class Quotas {
  readonly #limits: Limits;
  readonly #byOwner: Readonly<Record<string, Partial<Limits>>>;
  readonly #monotonicMs: () => number;
  readonly #buckets = new Map<string, Bucket>();

  /** Rates use a monotonic clock: setting the system clock back must not block creations. */
  constructor(
    limits: Limits,
    byOwner: Readonly<Record<string, Partial<Limits>>> = {},
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#limits = limits;
    this.#byOwner = byOwner;
    this.#monotonicMs = monotonicMs;
  }

  of(owner: string): Limits {
    return { ...this.#limits, ...(Object.hasOwn(this.#byOwner, owner) ? this.#byOwner[owner] : {}) };
  }

  instanceLimit(owner: string): number {
    return this.of(owner).instances;
  }

  blobLimit(owner: string): number {
    return this.of(owner).blobBytes;
  }

  /** Token bucket per owner, with a burst of one second. The error says when to retry. */
  admitCreate(owner: string, count = 1): void {
    const rate = this.of(owner).createsPerSecond;
    const now = this.#monotonicMs();
    const bucket = this.#buckets.get(owner) ?? { tokens: rate, at: now };
    const tokens = Math.min(rate, bucket.tokens + ((now - bucket.at) / 1_000) * rate);
    if (this.#buckets.size > 10_000) this.#buckets.clear();
    if (tokens < Math.min(count, rate)) {
      this.#buckets.set(owner, { tokens, at: now });
      const retryAfterSeconds = Math.max(1, Math.ceil((Math.min(count, rate) - tokens) / rate));
      throw new PlatformError(
        "quota.exceeded",
        `You have reached maximum request limit: ${rate} creations a second for '${owner}'; try again in ${retryAfterSeconds} s`,
        {
          details: { owner, createsPerSecond: rate, retryAfterSeconds },
        },
      );
    }
    this.#buckets.set(owner, { tokens: tokens - count, at: now });
  }
}
