import { PlatformError } from "@aenv/contract";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";

/** What one owner has uploaded, with sizes. It is one row, so that its sum is always consistent. */
interface OwnershipRow {
  readonly owner: string;
  /** Blobs by digest. The content of a version, which is in the store, has its `contentKey`. */
  readonly blobs: Readonly<Record<string, { readonly size: number; readonly since: string }>>;
}

/** An upload in progress. Its bytes count against the quota as they arrive. */
export interface Meter extends Disposable {
  add(bytes: number): void;
}

/** Limits the length of an owner's row. */
const MAX_BLOBS = 10_000;

interface Usage {
  stored: number;
  arriving: number;
  meters: number;
}

const CONTENT = "content:";

/** The key of a version's content, which counts against the same quota as archives. */
export function contentKey(contentDigest: string): string {
  return `${CONTENT}${contentDigest}`;
}

/** Which owner has uploaded which blobs. Only an owner of a blob may publish it, and it counts against the quota of each of its owners. */
export class BlobOwnership {
  readonly #rows: Collection<OwnershipRow>;
  readonly #quotaOf: (owner: string) => number;
  readonly #usage = new Map<string, Usage>();

  constructor(store: Store, quotaOf: (owner: string) => number) {
    this.#rows = new Collection<OwnershipRow>(store, "blob-holding", () => ({}));
    this.#quotaOf = quotaOf;
  }

  async has(owner: string, digest: string): Promise<boolean> {
    const row = await this.#rows.find(owner);
    return row !== null && Object.hasOwn(row.value.blobs, digest);
  }

  async usedBy(owner: string): Promise<number> {
    const row = await this.#rows.find(owner);
    return row === null ? 0 : sumOf(row.value);
  }

  async open(owner: string): Promise<Meter> {
    const stored = await this.usedBy(owner);
    const usage = this.#usage.get(owner) ?? { stored, arriving: 0, meters: 0 };
    usage.stored = stored;
    usage.meters += 1;
    this.#usage.set(owner, usage);
    let own = 0;
    const release = () => {
      usage.arriving -= own;
      own = 0;
    };
    return {
      add: (bytes) => {
        try {
          this.#assertWithinQuota(owner, usage.stored + usage.arriving + bytes);
        } catch (error) {
          // Now, not when the upload is cleaned up: concurrent uploads may use the freed quota.
          release();
          throw error;
        }
        usage.arriving += bytes;
        own += bytes;
      },
      [Symbol.dispose]: () => {
        release();
        usage.meters -= 1;
        if (usage.meters === 0) this.#usage.delete(owner);
      },
    };
  }

  /**
   * Records a finished upload; false if it is recorded already. The quota is checked in the same step, so uploads through other
   * servers count too.
   */
  async add(owner: string, digest: string, size: number, now: Date): Promise<boolean> {
    for (;;) {
      const row = await this.#rows.find(owner);
      const blobs = row?.value.blobs ?? {};
      if (Object.hasOwn(blobs, digest)) return false;
      if (!isContent(digest) && Object.keys(blobs).filter((key) => !isContent(key)).length >= MAX_BLOBS)
        throw exceeded(owner, `at most ${MAX_BLOBS} archives`, { maxBlobs: MAX_BLOBS });
      const next = { owner, blobs: { ...blobs, [digest]: { size, since: now.toISOString() } } };
      this.#assertWithinQuota(owner, sumOf(next));
      const isDone = row === null ? (await this.#rows.insert(owner, next)) === "inserted" : await this.#rows.swap(row, next);
      if (!isDone) continue;
      const usage = this.#usage.get(owner);
      if (usage !== undefined) usage.stored = sumOf(next);
      return true;
    }
  }

  async release(owner: string, ...digests: readonly string[]): Promise<void> {
    await this.#rows.update(owner, (row) => {
      const kept = Object.entries(row.blobs).filter(([digest]) => !digests.includes(digest));
      return kept.length === Object.keys(row.blobs).length ? null : { ...row, blobs: Object.fromEntries(kept) };
    });
  }

  /** Removes blobs that no longer exist. Entries younger than `before` are kept: their upload may not be finished. */
  async prune(isThere: (digest: string) => Promise<boolean>, before: Date): Promise<void> {
    for await (const { value } of this.#rows.each()) {
      const gone: string[] = [];
      for (const [digest, { since }] of Object.entries(value.blobs)) {
        // Contents are released when their version is removed.
        if (isContent(digest)) continue;
        if (since < before.toISOString() && !(await isThere(digest))) gone.push(digest);
      }
      if (gone.length > 0) await this.release(value.owner, ...gone);
    }
  }

  #assertWithinQuota(owner: string, bytes: number): void {
    const quota = this.#quotaOf(owner);
    if (bytes > quota) throw exceeded(owner, `${quota} bytes of archives and configs`, { quotaBytes: quota });
  }
}

function isContent(key: string): boolean {
  return key.startsWith(CONTENT);
}

function exceeded(owner: string, limit: string, details: object): PlatformError {
  const message = `'${owner}' may store ${limit}, and this upload would exceed it; delete unused versions, or request a higher limit`;
  return new PlatformError("quota.exceeded", message, { retryable: false, details: { owner, ...details, retryAfterSeconds: 60 } });
}

function sumOf(row: OwnershipRow): number {
  return Object.values(row.blobs).reduce((sum, { size }) => sum + size, 0);
}
