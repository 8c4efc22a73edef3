import { createHash } from "node:crypto";
import { canonicalJson, PlatformError } from "@aenv/contract";
import type { Collection } from "../stores/collection.ts";
import type { Indexes } from "../stores/store.ts";
import { KEEP_ENDED_MS } from "./expiry.ts";

export interface IdempotencyRow {
  /** The instances of the key: one, or the forks of one request. */
  readonly instanceIds: readonly string[];
  /** Digest of the request, to detect the same key with another request. */
  readonly request: string;
  readonly createdAt: string;
}

const HOUR_MS = 3_600_000;
/** How long a key is remembered; no client retries for longer. */
const REMEMBER_HOURS = 24;
/** How far back expired keys are searched for, in case no server was running. */
const SWEEP_HOURS = 14 * 24;

/** Keys are indexed by the hour of their first request. */
export function idempotencyIndexes(row: IdempotencyRow): Indexes {
  return { hour: hourOf(Date.parse(row.createdAt)) };
}

/** A repeated request with the same key gets the result of the first one. */
export class Idempotency {
  readonly #rows: Collection<IdempotencyRow>;
  readonly #now: () => Date;

  constructor(rows: Collection<IdempotencyRow>, now: () => Date) {
    this.#rows = rows;
    this.#now = now;
  }

  /** The instance ids of the key: the given ones for the first request, those of the first for all others. */
  async reserve(owner: string, key: string, request: unknown, instanceIds: readonly string[]): Promise<IdempotencyRow> {
    if (key.length > 256)
      throw new PlatformError("request.invalid", `the idempotency key has ${key.length} characters; at most 256 are allowed`);
    const name = createHash("sha256").update(`${owner}\n${key}`).digest("hex");
    const row: IdempotencyRow = { instanceIds, request: digestOf(request), createdAt: this.#now().toISOString() };
    for (;;) {
      if ((await this.#rows.insert(name, row)) === "inserted") return row;
      const known = await this.#rows.find(name);
      if (known === null) continue;
      if (known.value.request === row.request) return known.value;
      throw new PlatformError("request.conflict", "this idempotency key was used before, for another request; use a new key");
    }
  }

  /** Removes expired keys. */
  async sweep(): Promise<void> {
    const now = this.#now().getTime();
    for (let hours = REMEMBER_HOURS + 1; hours <= SWEEP_HOURS; hours++) {
      const value = hourOf(now - hours * HOUR_MS);
      for await (const row of this.#rows.each({ index: "hour", value })) await this.#rows.remove(row.key, row.rev);
    }
  }
}

/** Rows of instances are kept at least this long. A missing row of an older key was deleted, and the key cannot be used again. */
export function assertRemembered({ createdAt }: IdempotencyRow, now: Date): void {
  if (now.getTime() - Date.parse(createdAt) < KEEP_ENDED_MS) return;
  throw new PlatformError("instance.gone", "the instances of this idempotency key have ended and were deleted; use a new key");
}

function hourOf(ms: number): string {
  return String(Math.floor(ms / HOUR_MS));
}

/** Independent of the order of the fields. */
function digestOf(request: unknown): string {
  return createHash("sha256").update(canonicalJson(request)).digest("hex");
}
