import { createHash, randomBytes } from "node:crypto";
import { PlatformError } from "@aenv/contract";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";

/** What a ticket permits. */
export interface TicketRow {
  readonly direction: "upload" | "download";
  readonly name: string;
  readonly version: string;
  readonly owner: string;
  readonly expiresAt: string;
}

export interface Ticket {
  /** 160 random bits, safe in a path. Knowing it permits one use. */
  readonly ticket: string;
  readonly expiresAt: string;
}

const LIFE_MS = 15 * 60_000;
const MAX_OPEN = 200;

/**
 * One-time permissions to upload or download an archive without a token. The original's client requests a URL and
 * then uses it without credentials. The store holds only a ticket's hash.
 */
export class Tickets {
  readonly #rows: Collection<TicketRow>;
  readonly #now: () => Date;

  constructor(store: Store, now: () => Date) {
    this.#rows = new Collection<TicketRow>(store, "ticket", ({ owner }) => ({ owner }));
    this.#now = now;
  }

  async issue(permission: Omit<TicketRow, "expiresAt">): Promise<Ticket> {
    const ticket = randomBytes(20).toString("hex");
    const row = { ...permission, expiresAt: new Date(this.#now().getTime() + LIFE_MS).toISOString() };
    const limit = { index: "owner", value: permission.owner, max: MAX_OPEN };
    for (const isLast of [false, true]) {
      const inserted = await this.#rows.insert(keyOf(ticket), row, { limit });
      if (inserted === "inserted") break;
      if (isLast) {
        const message = `'${permission.owner}' has ${MAX_OPEN} unused upload and download links; use them or wait until they expire`;
        throw new PlatformError("quota.exceeded", message, { details: { owner: permission.owner, retryAfterSeconds: 60 } });
      }
      await this.collect();
    }
    return { ticket, expiresAt: row.expiresAt };
  }

  /** Uses up a ticket. Of concurrent requests with the same ticket, exactly one succeeds. */
  async redeem(ticket: string, direction: TicketRow["direction"]): Promise<TicketRow> {
    const row = await this.#rows.find(keyOf(ticket));
    const isValid = row !== null && row.value.direction === direction && row.value.expiresAt > this.#now().toISOString();
    if (isValid && (await this.#rows.remove(row.key, row.rev))) return row.value;
    throw new PlatformError("ticket.not_found", `this ${direction} link is unknown, was used, or has expired; request a new one`);
  }

  async collect(): Promise<void> {
    const now = this.#now().toISOString();
    for await (const { key, rev, value } of this.#rows.each()) if (value.expiresAt <= now) await this.#rows.remove(key, rev);
  }
}

function keyOf(ticket: string): string {
  return createHash("sha256").update(ticket).digest("hex");
}
