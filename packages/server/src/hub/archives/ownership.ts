import { PlatformError } from "@aenv/contract";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";

/** What one owner has uploaded, and how much of their quota each piece takes. One row, so that its sum is always true. */
interface HoldingRow {
  readonly owner: string;
  /** By digest; a version's content, which is in the store, under `contentKey`. */
  readonly blobs: Readonly<Record<string, { readonly size: number; readonly since: string }>>;
}

/** An upload in progress: its bytes count against the quota before it is finished. */
export interface Meter extends Disposable {
  add(bytes: number): void;
}

/** Keeps an owner's row short, however small the pieces are. */
const MAX_BLOBS = 10_000;

interface Usage {
  stored: number;
  arriving: number;
  meters: number;
}

const CONTENT = "content:";

/** What a version's content is held under: it counts against the same quota as archives. */
export function contentKey(contentDigest: string): string {
  return `${CONTENT}${contentDigest}`;
}

/** Who holds which blobs. Only a holder may publish a blob, and every holder pays for it. */
export class Holdings {
  readonly #rows: Collection<HoldingRow>;
  readonly #quotaOf: (owner: string) => number;
  readonly #usage = new Map<string, Usage>();

  constructor(store: Store, quotaOf: (owner: string) => number) {
    this.#rows = new Collection<HoldingRow>(store, "blob-holding", () => ({}));
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
    const giveBack = () => {
      usage.arriving -= own;
      own = 0;
    };
    return {
      add: (bytes) => {
        try {
          this.#demandRoom(owner, usage.stored + usage.arriving + bytes);
        } catch (error) {
          // At once, not when the upload has been cleared away: its room is for the others that are arriving.
          giveBack();
          throw error;
        }
        usage.arriving += bytes;
        own += bytes;
      },
      [Symbol.dispose]: () => {
        giveBack();
        usage.meters -= 1;
        if (usage.meters === 0) this.#usage.delete(owner);
      },
    };
  }

  /**
   * Writes a finished upload down; false if it was there. The quota is checked in the same step, whatever other
   * replicas have let in meanwhile.
   */
  async hold(owner: string, digest: string, size: number, now: Date): Promise<boolean> {
    for (;;) {
      const row = await this.#rows.find(owner);
      const blobs = row?.value.blobs ?? {};
      if (Object.hasOwn(blobs, digest)) return false;
      if (!isContent(digest) && Object.keys(blobs).filter((key) => !isContent(key)).length >= MAX_BLOBS)
        throw exceeded(owner, `at most ${MAX_BLOBS} archives`, { maxBlobs: MAX_BLOBS });
      const next = { owner, blobs: { ...blobs, [digest]: { size, since: now.toISOString() } } };
      this.#demandRoom(owner, sumOf(next));
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

  /** Nobody pays for what is gone. What is younger than `before` may be about to arrive. */
  async prune(isThere: (digest: string) => Promise<boolean>, before: Date): Promise<void> {
    for await (const { value } of this.#rows.each()) {
      const gone: string[] = [];
      for (const [digest, { since }] of Object.entries(value.blobs)) {
        // Contents are given back when their version is removed.
        if (isContent(digest)) continue;
        if (since < before.toISOString() && !(await isThere(digest))) gone.push(digest);
      }
      if (gone.length > 0) await this.release(value.owner, ...gone);
    }
  }

  #demandRoom(owner: string, bytes: number): void {
    const quota = this.#quotaOf(owner);
    if (bytes > quota) throw exceeded(owner, `${quota} bytes of archives and configs`, { quotaBytes: quota });
  }
}

function isContent(key: string): boolean {
  return key.startsWith(CONTENT);
}

function exceeded(owner: string, limit: string, details: object): PlatformError {
  const message = `'${owner}' may store ${limit}, and this would be more; delete versions that are no longer needed, or ask for more`;
  return new PlatformError("quota.exceeded", message, { retryable: false, details: { owner, ...details, retryAfterSeconds: 60 } });
}

function sumOf(row: HoldingRow): number {
  return Object.values(row.blobs).reduce((sum, { size }) => sum + size, 0);
}
