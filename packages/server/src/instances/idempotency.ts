import { createHash } from "node:crypto";
import { PlatformError } from "@aenv/contract";
import type { Collection } from "../stores/collection.ts";

export interface IdempotencyRow {
  readonly instanceId: string;
  /** What was asked for, so that the same key with another request is noticed. */
  readonly request: string;
  readonly createdAt: string;
}

/** How long a key is remembered; a client has long given up by then. */
const REMEMBER_MS = 24 * 3_600_000;

/** One key, one instance: a request that is sent again finds what the first one made. */
export class Idempotency {
  readonly #rows: Collection<IdempotencyRow>;
  readonly #now: () => Date;

  constructor(rows: Collection<IdempotencyRow>, now: () => Date) {
    this.#rows = rows;
    this.#now = now;
  }

  /** The instance id that belongs to the key: the given one for the first who comes, that one's for all others. */
  async reserve(owner: string, key: string, request: unknown, instanceId: string): Promise<IdempotencyRow> {
    if (key.length > 256)
      throw new PlatformError("request.invalid", `the idempotency key has ${key.length} characters; at most 256 are allowed`);
    const name = createHash("sha256").update(`${owner}\n${key}`).digest("hex");
    const row: IdempotencyRow = { instanceId, request: digestOf(request), createdAt: this.#now().toISOString() };
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
    const before = this.#now().getTime() - REMEMBER_MS;
    for await (const row of this.#rows.each()) {
      if (Date.parse(row.value.createdAt) < before) await this.#rows.remove(row.key, row.rev);
    }
  }
}

function digestOf(request: unknown): string {
  return createHash("sha256").update(JSON.stringify(request)).digest("hex");
}
