import { createHash } from "node:crypto";
import { canonicalJson, PlatformError } from "@aenv/contract";
import type { Collection } from "../stores/collection.ts";
import type { Indexes } from "../stores/store.ts";
import { KEEP_ENDED_MS } from "./expiry.ts";

export interface IdempotencyRow {
  /** The instances that belong to the key: one, or the forks that were asked for together. */
  readonly instanceIds: readonly string[];
  /** What was asked for, so that the same key with another request is noticed. */
  readonly request: string;
  readonly createdAt: string;
}

const HOUR_MS = 3_600_000;
/** How long a key is remembered; a client has long given up by then. */
const REMEMBER_HOURS = 24;
/** How far back forgotten keys are looked for, for servers that have stood still. */
const SWEEP_HOURS = 14 * 24;

/** Keys are found by the hour in which they came. */
export function idempotencyIndexes(row: IdempotencyRow): Indexes {
  return { hour: hourOf(Date.parse(row.createdAt)) };
}

/** One key, one answer: a request that is sent again finds what the first one made. */
export class Idempotency {
  readonly #rows: Collection<IdempotencyRow>;
  readonly #now: () => Date;

  constructor(rows: Collection<IdempotencyRow>, now: () => Date) {
    this.#rows = rows;
    this.#now = now;
  }

  /** The instance ids that belong to the key: the given ones for the first who comes, that one's for all others. */
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

  /** Forgets what is too old to be asked for again. */
  async sweep(): Promise<void> {
    const now = this.#now().getTime();
    for (let hours = REMEMBER_HOURS + 1; hours <= SWEEP_HOURS; hours++) {
      const value = hourOf(now - hours * HOUR_MS);
      for await (const row of this.#rows.each({ index: "hour", value })) await this.#rows.remove(row.key, row.rev);
    }
  }
}

/** An instance is kept for longer than this after it was asked for; if it is gone, it was there and is forgotten. */
export function assertRemembered({ createdAt }: IdempotencyRow, now: Date): void {
  if (now.getTime() - Date.parse(createdAt) < KEEP_ENDED_MS) return;
  throw new PlatformError("instance.gone", "what this idempotency key has made has ended and is forgotten; use a new key");
}

function hourOf(ms: number): string {
  return String(Math.floor(ms / HOUR_MS));
}

/** The same for the same fields, in whichever order they were written. */
function digestOf(request: unknown): string {
  return createHash("sha256").update(canonicalJson(request)).digest("hex");
}
